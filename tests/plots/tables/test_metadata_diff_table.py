"""What differs between arms besides the containers, and what is the same everywhere."""

from typing import Any

from experiments.results.result import Result
from plots.tables.metadata_diff_table import by_arm
from tests.launched import made, numa


def launch(arm: str, mpi: str = "openmpi", **recorded: Any) -> Result:
    return made({"launch": {"arm": arm, "mpi": mpi}, "environment": recorded})


def test_what_differs_is_told_for_each_arm_the_host_first() -> None:
    apart, _ = by_arm(
        [
            launch("docker-tuned-one", versions={"python": "3.11.2"}, kernel="6.1"),
            launch("host", versions={"python": "3.11.7"}, kernel="6.1"),
        ]
    )
    assert apart == {"versions.python": {"host": "3.11.7", "docker-tuned-one": "3.11.2"}}
    assert list(apart["versions.python"]) == ["host", "docker-tuned-one"]


def test_mpis_differ_without_being_a_difference_between_arms() -> None:
    every = [
        launch(arm, mpi, versions={"mpi": mpi})
        for arm in ("host", "docker-tuned-one")
        for mpi in ("openmpi", "mpich")
    ]
    assert by_arm(every) == ({}, {"versions.mpi": "openmpi; mpich"})


def test_a_difference_with_one_mpi_only_names_what_it_has_there() -> None:
    apart, _ = by_arm(
        [
            launch("host", "openmpi", libc="2.36"),
            launch("docker-tuned-one", "openmpi", libc="2.36"),
            launch("host", "mpich", libc="2.40"),
            launch("docker-tuned-one", "mpich", libc="2.41"),
            launch("imb", "impi", libc="2.36"),
        ]
    )
    assert apart == {"libc": {"host": "2.40", "imb": "", "docker-tuned-one": "2.41"}}


def test_what_only_one_arm_recorded_is_a_difference() -> None:
    apart, _ = by_arm([launch("host", thp="always"), launch("docker-tuned-one")])
    assert apart == {"thp": {"host": "always", "docker-tuned-one": "not recorded"}}


def test_load_and_the_data_path_have_their_places_elsewhere() -> None:
    every = [
        launch("host", machine={"load": "1"}, datapath={"cma": "works"}),
        launch("docker-tuned-one", machine={"load": "2"}, datapath={"cma": "refused"}),
    ]
    assert by_arm(every) == ({}, {"machine.load": "1; 2"})


def test_many_values_are_counted() -> None:
    every = [launch("host", id=str(number)) for number in range(5)]
    assert by_arm(every) == ({}, {"id": "0; 1 (and 3 more)"})


def test_nodes_have_a_map_and_what_made_them_hbm_stands_here_in_plain_words() -> None:
    hbm = {"nodes": [4, 5], "rule": "hwloc"}
    every = [
        launch(arm, topology={"nodes": [node], "hbm": hbm})
        for node, arm in zip(numa(1, hbm=1), ("host", "docker-tuned-one"), strict=True)
    ]
    assert by_arm(every) == ({}, {"topology.hbm.nodes": "4, 5", "topology.hbm.rule": "hwloc"})
