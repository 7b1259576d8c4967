"""What real MPIs tell of themselves, and that it is what a message shows."""

import errno
import functools
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mpi4py import MPI

from experiments.analysis.mpi_transport_log import chosen
from experiments.environments.mpiexec import asking
from experiments.machine import datapath
from experiments.machine.datapath import ALONE, ELSEWHERE, SHARED_MEMORY, TRIED, WORKS
from experiments.model.environment import MPIS
from experiments.processes import tracking
from tests.starting import Start

PROGRAM = Path(__file__).parents[1] / "ranks" / "tell.py"
MESSAGES_BY_TCP = {
    "OMPI_MCA_btl": "tcp,self",
    "OMPI_MCA_btl_tcp_if_include": "lo",
    "OMPI_MCA_pml": "ob1",
}
"""Ranks that share nothing can still send each other their answers."""

Report = tuple[dict[str, Any], str]


def asked(
    start: Start, folder: Path, mpi: str, ranks: int, *words: str, **variables: str
) -> Report:
    """What rank 0 found, and what the MPI wrote when asked."""
    out = folder / "report.json"
    ended = start(folder, PROGRAM, ranks, str(out), *words, mpi=mpi, env=asking(mpi) | variables)
    return json.loads(out.read_text()), ended.output


@pytest.fixture
def tell(mpirun_in: Start, tmp_path: Path) -> Callable[..., Report]:
    """tell(mpi, ranks, *words, **variables): asked() in the folder of the test."""
    return functools.partial(asked, mpirun_in, tmp_path)


@pytest.fixture(scope="module")
def reported(mpirun_in: Start, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Report]:
    """reported(mpi): as asked(), of three ranks that talk; each MPI runs once."""
    return functools.cache(
        lambda mpi: asked(mpirun_in, tmp_path_factory.mktemp(mpi), mpi, 3, "talk")
    )


@pytest.mark.ranks
@pytest.mark.parametrize(
    ("mpi", "without", "variable", "values"),
    [
        ("openmpi", {"OMPI_MCA_smsc": "^cma"}, "btl_sm_flags", ("15", "9")),
        ("mpich", {"MPIR_CVAR_CH4_CMA_ENABLE": "0"}, "MPIR_CVAR_CH4_CMA_ENABLE", ("1", "0")),
    ],
)
def test_an_mpi_that_says_single_copy_copies_a_message_once(
    tell: Callable[..., Report],
    reported: Callable[[str], Report],
    mpi: str,
    without: dict[str, str],
    variable: str,
    values: tuple[str, str],
) -> None:
    path, _ = reported(mpi)
    if (path["cma"], path["kcmp"]) != ("works", "works"):
        pytest.skip(f"process_vm_readv {path['cma']}, kcmp {path['kcmp']} here")
    assert (path["told"][variable], path["told"]["copies"]) == (values[0], "one")
    shown = tell(mpi, 2, **without)[0]["told"]
    assert (shown[variable], shown["copies"]) == (values[1], "two")


@pytest.mark.ranks
@pytest.mark.parametrize(
    ("mpi", "memory"), [("openmpi", "sm"), ("mpich", "posix"), ("impi", "shm")]
)
def test_mpis_say_shared_memory(reported: Callable[[str], Report], mpi: str, memory: str) -> None:
    path, log = reported(mpi)
    assert (path["told"]["ranks"], path["told"]["nodes"]) == ("3", "1")
    ways = chosen(path, log)
    assert (ways["shared memory"], ways["network"]) == (memory, "none")


@pytest.mark.ranks
@pytest.mark.parametrize(
    ("mpi", "variables", "network"),
    [
        ("openmpi", MESSAGES_BY_TCP, "tcp"),
        ("mpich", {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "self,tcp"}, "UCX tcp"),
        (
            "impi",
            {"I_MPI_FABRICS": "ofi", "I_MPI_OFI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo"},
            "libfabric tcp over lo",
        ),
    ],
)
def test_without_shared_memory_an_mpi_says_its_network(
    tell: Callable[..., Report], mpi: str, variables: dict[str, str], network: str
) -> None:
    path, log = tell(mpi, 2, **variables)
    ways = chosen(path, log)
    assert (ways["shared memory"], ways["single copy"]) == ("none", "none")
    assert ways["network"].startswith(network)


@pytest.mark.ranks
@pytest.mark.parametrize("mpi", MPIS)
def test_an_mpi_is_silent_while_messages_go(reported: Callable[[str], Report], mpi: str) -> None:
    printed = reported(mpi)[1].splitlines()
    begin = printed.index("begin")
    assert begin > 0
    assert printed[begin + 1] == "end"


@pytest.mark.ranks
def test_one_rank_copies_nothing_and_is_its_own_neighbour(tell: Callable[..., Report]) -> None:
    path, log = tell("openmpi", 1)
    assert path["told"]["copies"] == ALONE
    assert chosen(path, log)["network"] == "none"
    assert {path[tried] for tried in TRIED} == {WORKS}


APART = Path(__file__).parents[1] / "ranks" / "apart.py"

Probe = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def probe(mpirun: Start, tmp_path: Path) -> Probe:
    """probe(*switches): the answers of two ranks, each in namespaces of its own."""

    def run(*switches: str) -> list[dict[str, Any]]:
        asked = [switch for switch in switches if not switch.startswith("--own")]
        if subprocess.run(["unshare", *asked, "true"], capture_output=True).returncode:
            pytest.skip("this user may not make namespaces")
        out = tmp_path / "answers.json"
        mpirun(APART, 2, str(out), *switches, env=MESSAGES_BY_TCP)
        assert not list(SHARED_MEMORY.glob("hbmcomm.probe.*")), "nothing is left"
        answers: list[dict[str, Any]] = json.loads(out.read_text())
        return answers

    return run


@pytest.mark.ranks
def test_ranks_of_one_place_have_nothing_apart(reported: Callable[[str], Report]) -> None:
    ranks = reported("openmpi")[0]["ranks"]
    assert len(ranks) == 3
    for rank in ranks:
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


def test_no_file_that_is_not_filled_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, _: bytes) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(datapath, "SHARED_MEMORY", tmp_path)
    monkeypatch.setattr(Path, "write_bytes", full)
    assert datapath.probe(MPI.COMM_SELF)["shm"] == "refused (no such file can be made)"
    assert not list(tmp_path.iterdir())


def test_a_killed_ranks_file_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datapath, "SHARED_MEMORY", tmp_path)
    monkeypatch.setattr(tracking, "SHM", tmp_path)
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)  # it was killed before
    datapath.probe(MPI.COMM_SELF)
    (left,) = tmp_path.iterdir()
    assert tracking.segments() == {left}
