"""Golden text of every command that an environment generates: a change shows as a readable diff."""

from dataclasses import replace
from pathlib import Path

import pytest

from experiments import schedule, spec
from experiments.environments.command import Process
from experiments.environments.docker import Docker, Machine
from experiments.environments.host import Host

LAUNCH = next(
    launch
    for launch in schedule.schedule(spec.load("quick"), 1)[0].launches
    if launch.arm == "docker"
)
FOLDER = Path("/results/incoming/0000-docker")
PREFIX = Path("/opt/hbmcomm")
QUADRANT = Machine("0-15", "0,4", ("/dev/dax0.0",), 1000, 1000)
EMULATED = {"MEMKIND_HBW_NODES": "0"}


def host(flavour: str, ranks: int) -> str:
    return Host(flavour, PREFIX, 2, EMULATED).command(replace(LAUNCH, ranks=ranks), FOLDER).shell()


def docker(flavour: str = "openmpi", machine: Machine = QUADRANT) -> Docker:
    return Docker(flavour, f"hbmcomm:{flavour}", PREFIX, 16, machine, "c1", EMULATED)


def test_a_container_gets_the_least_privilege_and_the_machine_passed_through() -> None:
    assert (
        docker().command(LAUNCH, FOLDER).shell().replace(" --", "\n--")
        == """\
docker run
--rm
--cap-add=SYS_NICE
--cap-drop=ALL
--cpuset-cpus=0-15
--cpuset-mems=0,4
--device=/dev/dax0.0:/dev/dax0.0:rw
--env=HOME=/tmp
--env=MEMKIND_HBW_NODES=0
--env=OMPI_ALLOW_RUN_AS_ROOT=1
--env=OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
--env=PATH=/opt/hbmcomm/bin:/usr/local/bin:/usr/bin:/bin
--label=hbmcomm.campaign=c1
--name=hbmcomm-c1-0000-docker
--network=none
--pids-limit=1152
--read-only
--security-opt=no-new-privileges
--shm-size=201326592
--tmpfs=/tmp:rw,nosuid,nodev,size=256m
--user=1000:1000
--volume=/results/incoming/0000-docker:/launch:rw
--workdir=/tmp hbmcomm:openmpi /opt/hbmcomm/bin/mpiexec -n 2
--bind-to none
--oversubscribe
--mca mpi_yield_when_idle 0 /opt/hbmcomm/bin/python -m experiments.harness /launch"""
    )


def test_the_sdk_is_given_the_same_as_the_shell_line_says() -> None:
    assert docker().command(LAUNCH, FOLDER).options == {
        "name": "hbmcomm-c1-0000-docker",
        "labels": {"hbmcomm.campaign": "c1"},
        "user": "1000:1000",
        "environment": {
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "PATH": "/opt/hbmcomm/bin:/usr/local/bin:/usr/bin:/bin",
            "MEMKIND_HBW_NODES": "0",
            "HOME": "/tmp",
        },
        "working_dir": "/tmp",
        "volumes": {"/results/incoming/0000-docker": {"bind": "/launch", "mode": "rw"}},
        "tmpfs": {"/tmp": "rw,nosuid,nodev,size=256m"},
        "shm_size": 201326592,
        "read_only": True,
        "network_mode": "none",
        "cap_drop": ["ALL"],
        "cap_add": ["SYS_NICE"],
        "security_opt": ["no-new-privileges"],
        "cpuset_cpus": "0-15",
        "cpuset_mems": "0,4",
        "devices": ["/dev/dax0.0:/dev/dax0.0:rw"],
        "pids_limit": 1152,
    }


@pytest.mark.parametrize("flavour", ["openmpi", "mpich", "impi"])
def test_no_container_is_privileged_or_root_or_on_a_network(flavour: str) -> None:
    options = docker(flavour).command(LAUNCH, FOLDER).options
    assert "privileged" not in options
    assert not options["user"].startswith("0")
    assert options["network_mode"] == "none"
    assert options["cap_drop"] == ["ALL"]


def test_a_machine_without_memory_devices_passes_none() -> None:
    bare = replace(QUADRANT, dax=())
    assert docker(machine=bare).command(LAUNCH, FOLDER).options["devices"] == []


def test_shared_memory_grows_with_the_ranks() -> None:
    many = replace(LAUNCH, ranks=16)
    sizes = [docker().command(each, FOLDER).options["shm_size"] for each in (LAUNCH, many)]
    assert sizes[1] > sizes[0] > 64 * 2**20


def test_the_host_runs_the_harness_of_its_own_environment() -> None:
    assert host("openmpi", 2) == (
        "env MEMKIND_HBW_NODES=0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
        "PATH=/opt/hbmcomm/bin:/usr/local/bin:/usr/bin:/bin "
        "/opt/hbmcomm/bin/mpiexec -n 2 --bind-to none --oversubscribe --mca mpi_yield_when_idle 0 "
        "/opt/hbmcomm/bin/python -m experiments.harness /results/incoming/0000-docker"
    )


def test_a_shell_line_is_quoted() -> None:
    assert Process(("echo", "two words"), {"A": "b c"}).shell() == "env 'A=b c' echo 'two words'"
