"""Contenders of a launch work over the buffers that are theirs."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from mpi4py import MPI

from experiments.implementations import entrants
from experiments.implementations.contender import Contender, ContenderMissing, plain
from experiments.measure.buffers import Unavailable, make_pool
from experiments.model.launch import Cell
from experiments.schedule.blocks import schedule
from tests.benches import ask
from tests.starting import Start

pytestmark = pytest.mark.ranks


def test_groups_of_torch_are_made_where_they_are_asked_for_and_one_may_be_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Making one imports torch, which takes a second."""
    noted: list[str] = []

    def gloo() -> Contender:
        noted.append("gloo")
        return plain(MPI.COMM_SELF)

    def torch() -> Contender:
        noted.append("torch")
        raise ContenderMissing("there is no compiler")

    groups = SimpleNamespace(makers=lambda: {"gloo": gloo, "torch": torch})
    monkeypatch.setattr(entrants, "TorchGroups", lambda *_: groups)
    monkeypatch.setattr(entrants, "_starting_communicator", lambda *_: None)
    memory = ("regular", "local", "arena")
    pool = make_pool(MPI.COMM_SELF, memory, ["direct"], "float32", (100, 100), 0)
    for made in ([], ["gloo"], ["torch"], ["gloo", "torch"]):
        noted.clear()
        launch = schedule(ask(2, peers=",".join(["openmpi", *made])), 1)[0].launches[0]
        contenders = entrants.Entrants(MPI.COMM_SELF, launch, tmp_path, {0})
        assert noted == made
        for name in made:
            cell = Cell("allreduce", name, "regular", "local", 64, "arena", "plain")
            if name == "gloo":
                assert contenders.of(cell, pool)[1] is pool
            else:
                with pytest.raises(Unavailable, match="torch is left out: there is no compiler"):
                    contenders.of(cell, pool)


@pytest.mark.parametrize("buffers", ["arena", pytest.param("numpy", marks=pytest.mark.rare)])
def test_another_build_has_arrays_of_its_own_arena(
    mpirun: Start, tmp_path: Path, buffers: str
) -> None:
    program = Path(__file__).parent / "ranks" / "own_arena.py"
    assert mpirun(program, 2, str(tmp_path), buffers).output.count("ok") == 2
