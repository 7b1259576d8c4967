"""What to ask of the suite where memory of a kind cannot be had; the library names none of it."""

import hbmcomm


def advised(kind: str, error: Exception) -> str:
    """The library's error, and the flag of `./inv run` that may help."""
    if not isinstance(error, hbmcomm.KindUnavailable):
        return str(error)
    if kind.startswith("hbw") and not hbmcomm.topology().hbm.nodes:
        return f"{error}. Here: ./inv run --emulate-hbw"
    if "SYS_NICE" in str(error):
        return f"{error}. Here: ./inv run --profiles tuned"
    return str(error)
