"""Golden text of every job of several containers: a change shows as a readable diff.

golden_jobs/ holds the whole text of Docker with a container per rank for Open MPI, and as a diff
how the other MPIs and isolated containers differ from it, and Podman from Docker.
"""

import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

from experiments.environments.docker import SEVERAL, Docker
from experiments.environments.enter import LAUNCHER
from experiments.environments.process import Job, Process
from experiments.environments.profiles import Machine, shared_memory
from experiments.model.environment import DOCKER, MPIS
from tests import launched
from tests.experiments.environments.golden_text import delta

GOLDEN = Path(__file__).parent / "golden_jobs"
FOLDER = Path("/results/incoming/0000")
PLACES = {"gateway": "10.0.0.1", "bridge": "br-1", "address0": "10.0.0.2", "address1": "10.0.0.3"}
LAUNCH = replace(launched.LAUNCH, arm="golden", environment=DOCKER, profile="tuned")


def job(
    layout: str,
    flavour: str = "openmpi",
    ranks: int = 2,
    engine: str = "docker",
    rootless: bool = False,
) -> Job:
    environment = Docker(
        *(f"hbmcomm:{flavour}", Path("/opt/hbmcomm"), 2),
        *(Machine("0-1", "0", (), 1000, 1000, 8 * 2**20), "c1", {"MEMKIND_HBW_NODES": "0"}),
        host_prefix=Path(f"/checkout/{flavour}"),
        engine=engine,
        rootless=rootless,
    )
    command = environment.command(replace(LAUNCH, layout=layout, mpi=flavour, ranks=ranks), FOLDER)
    assert isinstance(command, Job)
    return command


def readable(text: str) -> str:
    """One switch or variable per line, and no path of this checkout."""
    here = str(LAUNCHER.parents[2])
    text = text.replace(sys.executable, "/checkout/.venv/bin/python")
    for before in (" --", " -n ", " HBMCOMM_", ' "HBMCOMM_', " PATH=", " -hosts", " -localhost"):
        text = text.replace(before, f"\n    {before.lstrip()}")
    return text.replace(here, "/checkout") + "\n"


def lines(
    layout: str, flavour: str = "openmpi", engine: str = "docker", rootless: bool = False
) -> str:
    return readable(job(layout, flavour, engine=engine, rootless=rootless).shell())


def test_commands_are_those_of_the_golden_files() -> None:
    first = lines("per-rank")
    texts = {"docker-per-rank.txt": first}
    texts |= {f"{mpi}.diff": delta(first, lines("per-rank", mpi)) for mpi in ("mpich", "impi")}
    texts["docker-isolated.diff"] = "\n".join(
        delta(lines("per-rank", mpi), lines("isolated", mpi)) for mpi in MPIS
    )
    texts["podman-rootless.diff"] = "\n".join(
        delta(lines(layout, engine="podman"), lines(layout, engine="podman", rootless=True))
        for layout in SEVERAL
    )
    assert {path.name for path in GOLDEN.iterdir()} == texts.keys() | {"podman.diff"}
    for name, text in texts.items():
        assert text == (GOLDEN / name).read_text(), name


def test_podman_differs_from_docker_in_the_same_lines_of_every_job() -> None:
    for layout, mpi in product(SEVERAL, MPIS):
        podman = lines(layout, mpi, "podman")
        assert "docker" not in podman
        diff_lines = delta(lines(layout, mpi), podman.replace("podman", "docker")).splitlines()
        changed = [line for line in diff_lines if not line.startswith("@@")]
        assert changed == (GOLDEN / "podman.diff").read_text().splitlines(), (layout, mpi)


def test_containers_that_share_namespaces_share_that_of_users_too() -> None:
    first, other = job("per-rank", engine="podman", rootless=True).containers
    assert first.options["userns_mode"] == "keep-id"
    assert other.options["userns_mode"] == f"container:{first.options['name']}"
    alone = {
        container.options["userns_mode"] for container in job("isolated", rootless=True).containers
    }
    assert alone == {"keep-id"}


def test_every_rank_has_a_container_and_the_launch_folder_is_in_each() -> None:
    for layout in SEVERAL:
        containers = job(layout, ranks=4).containers
        names = [container.options["name"] for container in containers]
        assert names == [f"hbmcomm-c1-0000-golden-{number}" for number in range(4)]
        networks = {container.options["network"] for container in containers}
        assert networks == {"hbmcomm-c1-0000-golden"}
        assert all(str(FOLDER) in container.options["volumes"] for container in containers)


def test_isolated_containers_share_nothing_but_their_network() -> None:
    for container in job("isolated", ranks=4).containers:
        assert not {"ipc_mode", "pid_mode", "network_mode"} & set(container.options)
        assert container.options["shm_size"] == shared_memory(1)
    names = [container.options["hostname"] for container in job("isolated", ranks=4).containers]
    assert len(set(names)) == 4


def test_per_rank_containers_share_the_first_ones_memory_and_process_numbers() -> None:
    first, *others = job("per-rank", ranks=4).containers
    assert first.options["ipc_mode"] == "shareable"
    assert first.options["shm_size"] == shared_memory(4)
    for container in others:
        assert container.options["ipc_mode"] == f"container:{first.options['name']}"
        assert container.options["pid_mode"] == f"container:{first.options['name']}"
        assert "shm_size" not in container.options


def test_more_ranks_than_cores_yield_in_containers_too() -> None:
    for ranks in (2, 4):
        line = " ".join(job("isolated", "openmpi", ranks).process.words())
        assert f"--mca mpi_yield_when_idle {int(ranks == 4)}" in line
        for container in job("isolated", "impi", ranks).containers:
            assert ("I_MPI_WAIT_MODE" in container.options["environment"]) == (ranks == 4)


def test_what_is_found_goes_where_braces_were() -> None:
    for mpi in MPIS:
        text = " ".join(job("isolated", mpi).process_at(PLACES).words())
        assert "{" not in text, mpi
        assert "10.0.0.2=hbmcomm-c1-" in text, mpi
        assert ("-iface br-1" in text) == (mpi == "impi")


def test_a_shell_line_finds_in_variables_what_is_not_known_before() -> None:
    given = job("isolated")
    made = replace(given, process=Process(("run", "{address0}:$1", "a b", "{other}"))).shell()
    assert r"""run "$address0:\$1" 'a b' '{other}'""" in made
