"""What is made of a stored campaign in a second process."""

import os
import signal
from pathlib import Path

import pytest

from commands import stored
from experiments.model.errors import ExperimentsError


def ended(folder: Path, out: Path) -> None:
    """As the kernel ends a process when memory is short."""
    os.kill(os.getpid(), signal.SIGKILL)


def refused(folder: Path, out: Path) -> None:
    raise ExperimentsError(f"{out} cannot be written")


@pytest.mark.parametrize(
    ("writing", "message"),
    [
        (ended, r"ended, perhaps for lack of memory; .* write the page: ./inv report --results"),
        (refused, "^figures cannot be written$"),
    ],
)
def test_a_page_that_cannot_be_written_beside_the_figures_is_a_message(
    monkeypatch: pytest.MonkeyPatch, writing: object, message: str
) -> None:
    monkeypatch.setattr(stored, "write_report", writing)
    monkeypatch.setattr(stored, "draw", lambda folder, out: [])
    with pytest.raises(ExperimentsError, match=message):
        stored.draw_and_report(Path("results"), Path("figures"))
