"""The data path in words: what was lost against the host, why, and what gets it back."""

from collections.abc import Sequence
from typing import Any

import pytest

from experiments.analysis import data_path
from experiments.results.result import Result
from plots.tables.data_path import table
from plots.text import causes
from tests.launched import made

Launches = Sequence[dict[str, Any]]
HOST_NAMESPACES = {"ipc": "ipc:[1]", "net": "net:[1]", "pid": "pid:[1]"}
FREE = {
    "cma": "works",
    "kcmp": "works",
    "memfd": "works",
    "shm": "works",
    "capabilities_effective": "000001ffffffffff",
    "seccomp": "0",
    "namespaces": HOST_NAMESPACES,
    "namespaces_apart": "none",
    "ptrace_scope": "not found",
    "shm_bytes": "4294967296",
    "cpus_allowed": "0-1",
    "mems_allowed": "0",
    "uid": "0",
}
INSIDE = {
    "capabilities_effective": "0000000000000000",
    "seccomp": "2",
    "namespaces": {"ipc": "ipc:[7]", "net": "net:[7]", "pid": "pid:[7]"},
    "shm_bytes": str(192 * 2**20),
    "uid": "1000",
}
CLOSED = {"cma": "refused (EPERM)", "kcmp": "refused (EPERM)", "memfd": "works"}
ISOLATED = {
    **dict.fromkeys(("cma", "kcmp", "memfd"), "not possible (another PID namespace)"),
    "shm": "refused (ENOENT)",
}


def launch(
    mpi: str, arm: str, ways: tuple[str, str, str], nodes: str = "1", **tried: Any
) -> Result:
    """A launch with an MPI that chose (shared memory, single copy, network)."""
    inside = INSIDE if arm.startswith(("docker", "podman")) else {}
    chosen = dict(zip(("shared memory", "single copy", "network"), ways, strict=True))
    shown = {"library": mpi, "nodes": nodes, **tried.pop("told", {})}
    path = {**FREE, **inside, **tried, "told": shown, "chosen": chosen | {"said": "its words"}}
    asked = {"mpi": mpi, "arm": arm, "environment": arm.split("-")[0]}
    return made({"launch": asked, "environment": {"datapath": path}})


def sentences(launches: Launches) -> tuple[str, ...]:
    return causes.sentences(data_path.compare(launches))


def short(launches: Launches) -> str:
    return causes.short(data_path.compare(launches).losses)


OPENMPI = [
    launch("openmpi", "host", ("sm", "CMA", "none")),
    launch("openmpi", "docker-default-one", ("sm", "none", "none"), **CLOSED),
    launch("openmpi", "docker-tuned-one", ("sm", "CMA", "none")),
    launch("openmpi", "docker-privileged-one", ("sm", "CMA", "none")),
]
MPICH = [
    launch("mpich", "host", ("posix", "CMA", "none")),
    launch(
        "mpich",
        "docker-default-one",
        ("posix", "none", "none"),
        told={"MPIR_CVAR_CH4_CMA_ENABLE": "0"},
        **CLOSED,
    ),
]
INTEL = [
    launch("impi", "host", ("shm", "none", "none")),
    launch("impi", "docker-default-one", ("shm", "none", "none"), **CLOSED),
    launch("impi", "docker-tuned-one", ("shm", "none", "none")),
]
MPICH_TUNED = launch("mpich", "docker-tuned-one", ("posix", "CMA", "none"))
TCP = ("none", "none", "UCX tcp over eth0")
MPICH_APART = launch("mpich", "docker-tuned-isolated", TCP, "2", **ISOLATED)
MPICH_LOST = launch("mpich", "podman-tuned-one", ("posix", "none", "none"), cma="refused (EPERM)")
APART = launch("openmpi", "docker-default-isolated", ("none", "none", "tcp"), "2", **ISOLATED)
PODMAN = launch("openmpi", "podman-default-one", ("sm", "CMA", "none"))


@pytest.mark.parametrize(
    ("launches", "sentence"),
    [
        (
            OPENMPI,
            "Open MPI lost single copy in Docker, default, one container (kcmp refused (EPERM)): "
            "large messages are copied twice; the profiles tuned and privileged get it back.",
        ),
        (
            MPICH,
            "MPICH lost single copy in Docker, default, one container (process_vm_readv refused "
            "(EPERM), where MPICH would abort, so the launch switches single copy off): large "
            "messages are copied twice.",
        ),
        (
            [MPICH[0], MPICH_TUNED, MPICH_APART],
            "MPICH lost shared memory and single copy in Docker, tuned, isolated containers (it "
            "takes its ranks to be on 2 nodes, /dev/shm of another rank: refused (ENOENT)): "
            "messages go by UCX tcp over eth0; the layout one container gets them back.",
        ),
    ],
    ids=["a profile's refusal", "switched off", "containers apart"],
)
def test_a_lost_way_is_told_with_its_cause_its_effect_and_its_remedy(
    launches: Launches, sentence: str
) -> None:
    assert sentences(launches) == (sentence,)


@pytest.mark.parametrize(
    ("launches", "remedy"),
    [
        (OPENMPI[:3], "the profile tuned gets it back."),
        ([*MPICH, MPICH_LOST], "no other arm of this campaign gets it back."),
        ([*OPENMPI[:3], APART], "the profile tuned with the layout one container gets them back."),
        ([*OPENMPI[:2], PODMAN], "Podman, default, one container gets it back."),
    ],
)
def test_what_gets_a_lost_way_back_is_named(launches: Launches, remedy: str) -> None:
    assert sentences(launches)[-1].endswith(f"; {remedy}")


def test_an_mpi_that_never_copied_at_once_loses_nothing() -> None:
    assert sentences(INTEL) == (
        "Intel MPI loses no single copy in Docker, default, one container (process_vm_readv "
        "refused (EPERM)): it copies large messages twice on the host too.",
    )
    assert short(INTEL) == ""


def test_an_mpi_that_overlooks_shared_memory_is_reported_so() -> None:
    per_rank = launch("openmpi", "docker-tuned-per-rank", ("none", "none", "tcp"), "2")
    (text,) = sentences([OPENMPI[0], per_rank])
    assert "(it takes its ranks to be on 2 nodes, though they can share memory)" in text
    assert "messages go by tcp." in text


def test_another_means_is_no_loss() -> None:
    per_rank = launch("mpich", "docker-tuned-per-rank", ("UCX sysv", "CMA", "none"), "2")
    assert sentences([MPICH[0], per_rank]) == (
        "MPICH takes UCX sysv for shared memory in Docker, tuned, a container per rank, and posix "
        "on the host.",
    )
    assert short([MPICH[0], per_rank]) == ""


def test_arms_that_lost_the_same_share_a_sentence() -> None:
    podman = launch("openmpi", "podman-default-one", ("sm", "none", "none"), **CLOSED)
    again = launch("openmpi", "podman-tuned-one", ("sm", "CMA", "none"))
    (text,) = sentences([*OPENMPI[:3], podman, again])
    assert "in Docker, default, one container; Podman, default, one container (kcmp" in text


def test_a_caption_has_room_for_one_sentence() -> None:
    assert short([*OPENMPI, *MPICH, *INTEL]) == (
        "The data path differs from the host's: Open MPI lost single copy in Docker, default, one "
        "container; MPICH lost single copy in Docker, default, one container."
    )


def test_a_caption_of_many_losses_names_mpis_and_ways_alone() -> None:
    apart = [
        launch("openmpi", f"docker-{profile}-isolated", ("none", "none", "tcp"), "2", **ISOLATED)
        for profile in ("default", "tuned", "privileged")
    ]
    assert short([*OPENMPI, *MPICH, *apart]) == (
        "The data path differs from the host's: Open MPI and MPICH lost single copy; Open MPI lost "
        "shared memory, each in some arms: see the data paths."
    )


def test_profiles_that_lost_the_same_are_named_together() -> None:
    tcp = ("none", "none", "libfabric tcp over eth0")
    apart = [
        launch("impi", f"docker-{profile}-isolated", tcp, "2", **ISOLATED)
        for profile in ("default", "tuned")
    ]
    lost, harmless = sentences([*INTEL, *apart])
    assert lost.startswith(
        "Intel MPI lost shared memory in Docker, default and tuned, isolated containers (it takes"
    )
    assert lost.endswith("; the layout one container gets it back.")
    assert "isolated" not in harmless  # without shared memory there is no single copy to lose


def test_large_messages_may_go_by_a_network_beside_shared_memory() -> None:
    ways = ("UCX sysv", "none", "UCX tcp over eth0")
    per_rank = launch("mpich", "docker-default-per-rank", ways, "2", **CLOSED)
    text, changed = sentences([MPICH[0], per_rank])
    assert text.endswith(": large messages are copied twice, or go by UCX tcp over eth0.")
    assert changed.startswith("MPICH takes UCX sysv for shared memory in Docker, default,")


ALIKE = [OPENMPI[0], launch("openmpi", "host-again", ("sm", "CMA", "none")), OPENMPI[2]]


@pytest.mark.parametrize("launches", [ALIKE, [], OPENMPI[1:], [made({})]])
def test_paths_alike_and_paths_without_the_hosts_need_no_word(launches: Launches) -> None:
    assert sentences(launches) == ()
    assert short(launches) == ""


def test_where_nothing_was_asked_the_trial_speaks() -> None:
    asked_nothing = [
        made({"launch": {"arm": arm}, "environment": {"datapath": {"cma": cma}}})
        for arm, cma in (("host", "works"), ("docker-default-one", "refused (EPERM)"))
    ]
    (text,) = sentences(asked_nothing)
    assert "lost single copy in Docker, default, one container (process_vm_readv refused" in text


def test_the_table_has_a_row_for_each_mpi_and_arm() -> None:
    head, rows = table([*INTEL, *OPENMPI, OPENMPI[1]])
    assert [row[:2] for row in rows] == [
        ("Open MPI", "host"),
        ("Open MPI", "Docker, default, one container"),
        ("Open MPI", "Docker, tuned, one container"),
        ("Open MPI", "Docker, privileged, one container"),
        ("Intel MPI", "host"),
        ("Intel MPI", "Docker, default, one container"),
        ("Intel MPI", "Docker, tuned, one container"),
    ]
    assert dict(zip(head, rows[0], strict=True)) == {
        "MPI": "Open MPI",
        "arm": "host",
        "shared memory": "sm",
        "single copy": "CMA",
        "network": "none",
        "process_vm_readv": "works",
        "kcmp": "works",
        "memfd of a neighbour": "works",
        "/dev/shm of a neighbour": "works",
        "capabilities": "all",
        "seccomp": "off",
        "namespaces of its own": "none",
        "apart between ranks": "none",
        "ptrace_scope": "no Yama",
        "size of /dev/shm": "4 GiB",
        "CPUs": "0-1",
        "nodes": "0",
        "user": "root",
        "the MPI's own words": "its words",
    }
    inside = dict(zip(head, rows[1], strict=True))
    assert inside["process_vm_readv"] == inside["kcmp"] == "refused (EPERM)"
    assert inside["capabilities"] == "none"
    assert inside["seccomp"] == "filter"
    assert inside["namespaces of its own"] == "ipc, net, pid"
    assert inside["size of /dev/shm"] == "192 MiB"
    assert inside["user"] == "1000"


def test_launches_of_an_arm_that_differ_show_both() -> None:
    odd = launch("openmpi", "host", ("sm", "CMA", "none"), kcmp="refused (ESRCH)")
    head, rows = table([OPENMPI[0], odd])
    assert rows[0][head.index("kcmp")] == "works; refused (ESRCH)"


def test_a_launch_that_recorded_little_leaves_gaps() -> None:
    bare = made({"launch": {"mpi": "mpich"}, "environment": {"datapath": {"cma": "works"}}})
    head, ((*row,),) = table([bare])
    assert row[head.index("shared memory")] == row[head.index("user")] == "not told"
