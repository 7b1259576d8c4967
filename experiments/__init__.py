"""From a question to stored samples. Runs from a checkout of the project: no wheel holds it."""

from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parents[1]
_PROJECT = _CHECKOUT / "pyproject.toml"

if not (_PROJECT.is_file() and 'name = "hbmcomm"' in _PROJECT.read_text(encoding="utf-8")):
    raise ImportError(
        f"experiments runs from a checkout of hbmcomm only, and {_CHECKOUT} is none: it has no "
        "pyproject.toml of hbmcomm; run ./inv in a checkout",
        name=__name__,
    )
