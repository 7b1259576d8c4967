"""Each warning has its numbers; a campaign without fault has none."""

import re
from typing import Any

import pandas as pd

from experiments.analysis.reading import COLUMNS
from experiments.analysis.validity_warnings import cautions, left_out
from experiments.results.result import Result
from tests.experiments.analysis import launch_medians
from tests.launched import made

HEADER = {
    "missing": [],
    "schedule": [{"launches": ["0000-docker", "0000-host"]}],
    "experiment": {"launches": {"blocks": 10}},
}
CELL = launch_medians.CELL | {"block": 0, "group": 1, "unstable": False}


def launches(**of_docker: Any) -> dict[str, Result]:
    """Two launches, alike but for these values of the docker arm."""
    plain = {"cells": [], "environment": {"hashes": {"numpy": "aaaa"}}, "ranks": []}
    return {"0000-docker": made(plain | of_docker), "0000-host": made(plain)}


def cells(**of_docker: Any) -> pd.DataFrame:
    """One cell in two arms, alike but for these values of the docker arm."""
    arms = [
        {"arm": "docker", "environment": "docker"} | of_docker,
        {"arm": "host", "environment": "host"},
    ]
    return pd.DataFrame([CELL | arm for arm in arms], columns=list(COLUMNS))


def pools(**placement: dict[str, int]) -> list[dict[str, Any]]:
    """The ranks of a launch; one pool per kind, which belongs on node 1."""
    made = [{"kind": kind, "nodes": [1], "placement": sizes} for kind, sizes in placement.items()]
    return [{"pools": made}]


def test_a_campaign_without_fault_says_nothing() -> None:
    assert cautions(HEADER, launches(), cells(), {}) == []


def test_arms_that_took_no_turns_are_reported() -> None:
    frame = cells().assign(company="")
    (shown,) = cautions(HEADER, launches(), frame, {})
    assert shown.startswith("2 of 2 launches took no turns with the other arms of their block")
    together = frame.assign(company="0000-docker 0000-host")
    assert cautions(HEADER, launches(), together, {}) == []
    assert cautions(HEADER, launches(), frame[frame["arm"] == "host"], {}) == []
    bench = frame.assign(setting="default")
    assert cautions(HEADER, launches(), bench, {}) == [], "paired within a launch"


def test_ranks_that_used_a_cpu_while_they_waited_are_reported() -> None:
    def waited(cpu: float, **of_launch: Any) -> dict[str, Result]:
        shown = [{"pools": [], "asleep": {"seconds": 2.0, "cpu": used}} for used in (0.001, cpu)]
        asked = {"launch": {"arm": "docker", "mpi": "mpich", "block": 0}, "company": ["a", "b"]}
        return launches(ranks=shown, **asked | of_launch)

    assert cautions(HEADER, waited(0.009), cells(), {}) == []
    (shown,) = cautions(HEADER, waited(0.04), cells(), {})
    assert shown.endswith("the largest share: 2.0 % in docker with mpich")
    assert cautions(HEADER, waited(0.04, company=[]), cells(), {}) == [], "nobody was disturbed"


def test_other_files_in_a_launch_are_reported_with_its_name() -> None:
    (warning,) = cautions(HEADER, launches(environment={"hashes": {"numpy": "bbbb"}}), cells(), {})
    assert warning == (
        "the files of numpy are not the same in all launches: "
        "aaaa in 0000-host; bbbb in 0000-docker"
    )


def test_files_are_compared_within_an_mpi() -> None:
    several = {
        f"000{n}-{arm}": made(
            {"launch": {"mpi": mpi}, "environment": {"hashes": {"libmpi": value}}}
        )
        for n, (arm, mpi, value) in enumerate(
            [("a", "openmpi", "1"), ("b", "openmpi", "1"), ("c", "mpich", "2"), ("d", "mpich", "3")]
        )
        for hashes in [{"libmpi": value}]
    }
    header = HEADER | {"schedule": [{"launches": list(several)}]}
    (warning,) = cautions(header, several, cells(), {})
    assert warning == (
        "the files of libmpi are not the same in all launches with mpich: 2 in 0002-c; 3 in 0003-d"
    )


def test_pages_outside_the_nodes_of_their_kind_are_reported() -> None:
    placed = pools(hbw={"1": 100}, hbw_preferred={"0": 37, "1": 63})
    (warning,) = cautions(HEADER, launches(ranks=placed), cells(), {})
    assert warning == "hbw_preferred: 37 % of its pages are outside its nodes in 1 launch"


def test_cells_left_out_for_groups_of_different_sizes_are_counted() -> None:
    arms, kinds = cells(group=2), cells(group=2, arm="host", environment="host", kind="hbw")
    for frame, what in ((arms, "arms"), (kinds, "kinds")):
        (warning,) = cautions(HEADER, launches(), frame, {})
        assert warning.startswith(f"1 of 1 cells give no ratio between {what} of their block")


def test_cells_without_a_measurement_are_reported_once_per_reason_with_their_arms() -> None:
    def lacking(arm: str, why: str) -> Result:
        return made({"launch": {"arm": arm}, "cells": [{"skipped": why}]})

    both = {
        "0000-b": lacking("b", "the ranks cannot share memory: /proc/14/fd/3 is another file"),
        "0000-a": lacking("a", "the ranks cannot share memory: /proc/15/fd/4 is another file"),
    }
    (warning,) = cautions(HEADER, both, cells(), {})
    assert warning == (
        "2 cells of a, b were not measured: the ranks cannot share memory: /proc/14/fd/3 is "
        "another file"
    )


def test_unstable_cells_are_reported_by_arm() -> None:
    (warning,) = cautions(HEADER, launches(), cells(unstable=True), {})
    assert warning.startswith("cells unstable within their launch")
    assert warning.endswith("100 % in docker with 2 ranks")


def test_what_is_unlike_about_an_external_program_is_reported_once() -> None:
    external = {"external": {"differences": ["imb counts in steps", "imb checks nothing"]}}
    several = launches(**external) | {"0001-imb": launches(**external)["0000-docker"]}
    header = HEADER | {"schedule": [{"launches": list(several)}]}
    assert cautions(header, several, cells(), {}) == ["imb counts in steps", "imb checks nothing"]


def test_an_emulated_machine_is_reported_once() -> None:
    there = {"hashes": {"numpy": "aaaa"}, "machine": {"emulated": "gh200 (tcg)"}}
    by_name = launches(environment=there)
    by_name["0000-host"] = by_name["0000-docker"]
    (warning,) = cautions(HEADER, by_name, cells(), {})
    assert warning == (
        "Emulated machine gh200 (tcg): where ranks and pages are is real, times mean nothing"
    )


def test_arms_that_start_from_other_barriers_are_counted() -> None:
    both = cells()
    both["barrier"] = ["the MPI's", "the MPI's, then direct's"]
    (shown,) = cautions(HEADER, launches(), both, {})
    assert shown.startswith("in 1 of 1 cells the arms of a block started from different")
    assert "(the MPI's and the MPI's, then direct's)" in shown
    both["transport"] = ["mpi", "shared_memory"]  # multiprocessing takes the turns of mpi
    assert shown in cautions(HEADER, launches(), both, {})
    both["transport"] = "mpi"
    both["barrier"] = "the MPI's"
    assert cautions(HEADER, launches(), both, {}) == []
    both["barrier"] = ["", "the MPI's"]  # an older version stored none
    assert cautions(HEADER, launches(), both, {}) == []


def test_pages_that_moved_while_they_were_measured_are_reported() -> None:
    ranks = pools(regular={"1": 1000})
    ranks[0]["pools"][0]["placement_after"] = {"0": 250, "1": 750}
    shown = cautions(HEADER, launches(ranks=ranks), cells(), {})
    assert shown == [
        "regular: up to 25 % of a rank's pages moved to other nodes while 1 launch measured: its "
        "times mix both places; turn automatic NUMA balancing off "
        "(sysctl kernel.numa_balancing=0) and measure again"
    ]
    ranks[0]["pools"][0]["placement_after"] = {"1": 1000}
    assert cautions(HEADER, launches(ranks=ranks), cells(), {}) == []


def test_blocks_of_pairs_are_reported_and_their_extra_launches_are_none_that_were_planned() -> None:
    asked = [{"block": 0, "arm": "docker", "mpi": "openmpi"}, {"block": 0, "arm": "host"}]
    by_name = {str(number): made({"launch": launch}) for number, launch in enumerate(asked)}
    assert cautions(HEADER, by_name, cells(), {}) == []
    by_name["2"] = made({"launch": {"block": 0, "arm": "host", "beside": "docker"}})
    (shown,) = cautions(HEADER, by_name, cells(), {})
    assert shown.startswith("in 1 of 1 blocks not all arms took turns at once")
    del by_name["1"]
    assert cautions(HEADER, by_name, cells(), {})[0].startswith("1 of 2 planned launches")


def test_what_became_of_intel_mpis_policy_is_reported() -> None:
    asked = {"launch": {"hbw_policy": "hbw_bind", "arm": "host-hbw-bind"}}
    for datapath, words in (
        ({"memory_policy": "bind:8"}, "took I_MPI_HBW_POLICY=hbw_bind: its ranks have memory by b"),
        ({"memory_policy": "default"}, "did not take I_MPI_HBW_POLICY=hbw_bind: its ranks choose"),
        ({"memory_policy": "not found"}, "whether Intel MPI took .* is not known"),
        ({}, "whether Intel MPI took .* is not known"),
    ):
        facts = {"environment": {"hashes": {"numpy": "aaaa"}, "datapath": datapath}}
        (warning,) = cautions(HEADER, launches(**asked, **facts), cells(), {})
        assert re.search(f"host-hbw-bind: .*{words}", warning), datapath


def measured(arm: str, *cells: dict[str, Any], without: tuple[dict[str, Any], ...] = ()) -> Any:
    return made({"launch": {"arm": arm, "ranks": 2, "without": without}, "cells": cells})


def of_gather(transport: str, size: int | None, **more: str) -> dict[str, Any]:
    return {"operation": "gather", "transport": transport, "form": "plain", "bytes": size} | more


def test_what_went_well_is_not_mentioned() -> None:
    assert [*left_out([measured("mpich", of_gather("mpi", 8))])] == []


def test_wrong_data_is_reported_with_all_sizes_together() -> None:
    notes = left_out(
        [measured("impi", *(of_gather("mpi", size, wrong="1 element") for size in (1024, 8)))]
    )
    assert [*notes] == ["impi: plain Gather of 8, 1,024 bytes left wrong data, not counted"]


def test_a_contender_that_is_no_mpi_is_reported_with_the_mpi_beside_it() -> None:
    (note,) = left_out([measured("impi", of_gather("pickle", 8, wrong="1 element"))])
    assert note.startswith("pickle beside impi: plain Gather of 8 bytes")


def test_what_failed_is_reported_with_its_reason_once_for_all_blocks() -> None:
    left = (of_gather("mpi", 8, why="exit code 139"), of_gather("mpi", None, why="exit code 139"))
    (note,) = left_out([measured("openmpi-sm", without=left)] * 2)
    assert note == (
        "openmpi-sm, 2 ranks: plain Gather of any size left out once it failed: exit code 139"
    )
