"""Contenders of a launch work over the buffers that are theirs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mpi4py import MPI

from experiments.bench.question import ask
from experiments.programs.contenders import entrants
from experiments.schedule.blocks import schedule

pytestmark = pytest.mark.ranks


def test_gloo_is_left_only_where_it_took_part(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Leaving it imports torch, which takes seconds."""
    left: list[str] = []
    monkeypatch.setattr(entrants, "leave", lambda: left.append("left"))
    monkeypatch.setattr(entrants, "gloo", lambda *_: entrants.plain(MPI.COMM_SELF))
    monkeypatch.setattr(entrants.starter, "make_starter", lambda *_: None)
    for peers, expected in (("openmpi", []), ("openmpi,gloo", ["left"])):
        launch = schedule(ask(2, peers=peers).experiment, 1)[0].launches[0]
        entrants.Entrants(MPI.COMM_SELF, launch, tmp_path, {0}).close()
        assert left == expected


@pytest.mark.parametrize("buffers", ["arena", "numpy"])
def test_another_build_has_arrays_of_its_own_arena(
    mpirun: Callable[..., Any], tmp_path: Path, buffers: str
) -> None:
    program = Path(__file__).parent / "ranks" / "own_arena.py"
    assert mpirun(program, 2, str(tmp_path), buffers).output.count("ok") == 2
