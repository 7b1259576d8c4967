"""Which transports an MPI chose, from what real ones wrote (logs/): same keys, each MPI's words."""

from pathlib import Path
from typing import Any

from experiments.analysis.mpi_transport_log import NOT_TOLD, added, chosen

LOGS = Path(__file__).parents[1] / "logs"
OPENMPI = {"library": "Open MPI", "ranks": "2", "nodes": "1", "copies": "one"}
MPICH = {"library": "MPICH", "ranks": "2", "nodes": "1", "copies": "one"}
INTEL = {"library": "Intel MPI", "ranks": "2", "nodes": "1", "copies": "two"}
TWICE = {"copies": "two"}
APART = {"copies": "two", "nodes": "2"}
FULL = {"ranks": "4", "nodes": "2"}


def ways(shown: dict[str, str], log: str, cma: str = "works") -> tuple[str, str, str]:
    choice = chosen({"told": shown, "cma": cma}, (LOGS / f"{log}.txt").read_text())
    return choice["shared memory"], choice["single copy"], choice["network"]


REAL = (
    (OPENMPI, "openmpi-host", ("sm", "CMA", "none")),
    (OPENMPI | TWICE, "openmpi-default", ("sm", "none", "none")),
    (OPENMPI | TWICE, "openmpi-tcp", ("none", "none", "tcp")),
    (OPENMPI | APART, "openmpi-isolated", ("none", "none", "tcp")),
    (MPICH, "mpich-host", ("posix", "CMA", "none")),
    (MPICH | TWICE, "mpich-default", ("posix", "none", "none")),
    (MPICH | APART, "mpich-isolated", ("none", "none", "UCX tcp over eth0")),
    (MPICH | APART, "mpich-per-rank", ("UCX sysv", "none", "UCX tcp over eth0")),
    (MPICH | {"nodes": "2"}, "mpich-nolocal", ("UCX sysv", "CMA", "none")),
    (MPICH | APART, "mpich-ofi", ("none", "none", "libfabric tcp")),
    (INTEL, "impi-host", ("shm", "none", "none")),
    (INTEL | APART, "impi-isolated", ("none", "none", "libfabric tcp over eth0")),
    (INTEL, "impi-ofi", ("none", "none", "libfabric tcp over lo")),
    # ranks of two full nodes have both ways
    (MPICH | FULL, "mpich-isolated", ("posix", "CMA", "UCX tcp over eth0")),
    (INTEL | FULL, "impi-isolated", ("shm", "none", "libfabric tcp over eth0")),
)
"""What was shown, the log, and the ways: memory, single copies, network."""


def test_a_real_log_tells_the_ways() -> None:
    for shown, log, expected in REAL:
        assert ways(shown, log) == expected, log
    assert {log for _, log, _ in REAL} == {path.stem for path in LOGS.glob("*.txt")}


def test_the_mpis_own_words_say_why() -> None:
    log = (LOGS / "openmpi-default.txt").read_text()
    assert chosen({"told": OPENMPI | TWICE}, log)["said"] == (
        "on-host: all connections are sm; off-host: all connections are n/a; "
        "processes do not have the necessary permissions (i.e., CAP_SYS_PTRACE)"
    )
    log = (LOGS / "mpich-isolated.txt").read_text()
    assert chosen({"told": MPICH | APART}, log)["said"] == (
        "2 ranks on 2 nodes; inter-node tag(tcp/eth0)"
    )
    log = (LOGS / "impi-isolated.txt").read_text()
    assert chosen({"told": INTEL | APART}, log)["said"] == (
        "tuning_generic_shm-ofi.dat; libfabric provider: tcp"
    )


def test_ucx_under_open_mpi_names_its_lanes() -> None:
    log = (
        "Connection summary: (pml)\n"
        "  on-host:  all connections are ucx=posix;memory,xpmem;memory,rc_mlx5;mlx5_2:1\n"
        "  off-host: all connections are ucx=rc_mlx5;mlx5_2:1\n"
    )
    choice = chosen({"told": OPENMPI | FULL, "cma": "works"}, log)
    assert choice["shared memory"] == "UCX posix, UCX xpmem"
    assert choice["network"] == "UCX rc_mlx5"


def test_single_copy_is_what_a_message_showed() -> None:
    for copies, cma, expected in (
        ("one", "works", "CMA"),
        ("one", "refused (EPERM)", "by other means than CMA"),
        ("64 KiB: two; 1 MiB: one; 16 MiB: one", "works", "CMA from 1 MiB"),
        ("two", "works", "none"),
        ("not tried: one rank", "works", NOT_TOLD),
        ("", "works", NOT_TOLD),
    ):
        assert ways(OPENMPI | {"copies": copies}, "openmpi-host", cma)[1] == expected, copies


def test_a_log_without_its_words_tells_nothing() -> None:
    for shown in (OPENMPI, MPICH | {"nodes": "2"}, INTEL):
        choice = chosen({"told": shown, "cma": "works"}, "a warning\n")
        assert (choice["shared memory"], choice["network"], choice["said"]) == (NOT_TOLD,) * 3


def test_another_mpi_is_not_guessed_at() -> None:
    choice = chosen({"told": {"library": "MVAPICH", "ranks": "2", "nodes": "1"}}, "")
    assert set(choice.values()) == {NOT_TOLD}


def test_what_was_chosen_stands_beside_what_was_tried() -> None:
    environment: dict[str, Any] = {"machine": {}, "datapath": {"cma": "works", "told": OPENMPI}}
    path = added(environment, (LOGS / "openmpi-host.txt").read_text())["datapath"]
    assert path["cma"] == "works"
    assert path["chosen"]["shared memory"] == "sm"
    assert "chosen" not in environment["datapath"]


def test_a_launch_that_asked_nothing_stays_as_it_is() -> None:
    assert added({"datapath": {"cma": "works"}}, "log") == {"datapath": {"cma": "works"}}
    assert added({}, "log") == {}
