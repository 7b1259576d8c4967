"""What ranks find out about each other, in namespaces of their own too."""

import errno
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments.processes import tracking
from experiments.programs.machine import datapath
from experiments.programs.machine.datapath import ELSEWHERE, SHARED_MEMORY, TRIED, WORKS
from tests.starting import Start

PROGRAM = Path(__file__).parents[2] / "ranks" / "apart.py"
MESSAGES_BY_TCP = {
    "OMPI_MCA_btl": "tcp,self",
    "OMPI_MCA_btl_tcp_if_include": "lo",
    "OMPI_MCA_pml": "ob1",
}
"""Ranks that share nothing must be able to tell each other what they found."""

Probe = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def probe(mpirun: Start, tmp_path: Path) -> Probe:
    """probe(*switches, ranks=2): every rank's answers, each in namespaces of its own."""

    def run(*switches: str, ranks: int = 2) -> list[dict[str, Any]]:
        asked = [switch for switch in switches if not switch.startswith("--own")]
        if asked and subprocess.run(["unshare", *asked, "true"], capture_output=True).returncode:
            pytest.skip("this user may not make namespaces")
        out = tmp_path / "found.json"
        mpirun(PROGRAM, ranks, str(out), *switches, env=MESSAGES_BY_TCP if switches else None)
        assert not list(SHARED_MEMORY.glob("hbmcomm.probe.*")), "nothing is left"
        found: list[dict[str, Any]] = json.loads(out.read_text())
        return found

    return run


@pytest.mark.ranks
def test_ranks_of_one_place_have_nothing_apart(probe: Probe) -> None:
    for rank in probe(ranks=3):
        assert rank["namespaces_apart"] == "none"
        assert rank["hostnames"] == "1"
        assert rank["memfd"] == rank["shm"] == WORKS


@pytest.mark.ranks
def test_a_number_of_another_pid_namespace_means_no_neighbour(probe: Probe) -> None:
    for rank in probe("--pid", "--fork", "--mount-proc"):
        assert {rank[tried] for tried in ("cma", "kcmp", "memfd")} == {ELSEWHERE}
        assert rank["shm"] == WORKS
        assert rank["namespaces_apart"] == "mnt, pid"


@pytest.mark.ranks
def test_ranks_with_a_dev_shm_each_do_not_see_each_others_files(probe: Probe) -> None:
    for rank in probe("--mount", "--ipc", "--own-shm"):
        assert rank["shm"] == "refused (ENOENT)"
        assert rank["memfd"] == WORKS
        assert rank["namespaces_apart"] == "ipc, mnt"


@pytest.mark.ranks
def test_one_rank_is_its_own_neighbour(probe: Probe) -> None:
    (alone,) = probe(ranks=1)
    assert {alone[tried] for tried in TRIED} == {WORKS}


def test_a_file_that_cannot_be_filled_is_not_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, _: bytes) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(datapath, "SHARED_MEMORY", tmp_path)
    monkeypatch.setattr(Path, "write_bytes", full)
    with datapath._named(b"mark") as name:
        assert name == ""
    assert not list(tmp_path.iterdir())


def test_a_killed_ranks_file_is_one_that_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datapath, "SHARED_MEMORY", tmp_path)
    monkeypatch.setattr(tracking, "SHM", tmp_path)
    with datapath._named(b"mark") as name:
        assert tracking.segments() == {tmp_path / name}
