"""What may be an arm's whole effect though it is not the container: one sentence each."""

from collections.abc import Iterator

from experiments.analysis.findings import Findings
from experiments.analysis.selection import rows
from plots.layout import data_path_text
from plots.layout.labels import bytes_text, ranks_text, ratio_and_interval

PLACE = (
    "Where the pages of a file are in memory makes calls of a microsecond up to 4 % faster or "
    "slower, in every launch alike"
)
"""Of the trial in docs/method.md."""


def caveats(found: Findings) -> list[str]:
    """Every sentence that this campaign earns, a lost data path first."""
    lost = data_path_text.short(found.data_paths.losses)
    return [*([lost] if lost else []), *beside_data_path(found)]


def beside_data_path(found: Findings) -> Iterator[str]:
    """A sentence on different versions of Python, on copies of files, and on copies that stray."""
    if found.interpreters:
        host_first = sorted(found.interpreters.items(), reverse=True)
        named = ", ".join(f"{name} {version}" for name, version in host_first)
        yield f"The interpreters differ: Python: {named}."
    if found.other_files:
        named = "; ".join(f"{name}: {reason}" for name, reason in found.other_files.items())
        yield (
            f"Arms run from other copies of the image's files than Docker's containers ({named}). "
            f"{PLACE}."
        )
    if found.own_files:
        named = "; ".join(f"{name}: {reason}" for name, reason in found.own_files.items())
        yield (
            f"The host and its A/A pair run from one copy of their files ({named}). {PLACE}, which "
            "this noise floor does not hold."
        )
    for each in rows(found.straying_copies):
        yield (
            "The control differs: a plain copy without MPI already takes "
            f"{ratio_and_interval(each)} times as long in {each.arm} at "
            f"{bytes_text(each.bytes)}, {ranks_text(each.ranks)}; {each.straying} of {each.copies} "
            "copies differ like this, and MPI cannot be the cause."
        )
