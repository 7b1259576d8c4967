"""Launches on emulated hosts: where ranks go, and a campaign from its file to its bytes."""

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.analysis.reading import load
from experiments.catalogue import spec
from experiments.console.stages import Stages
from experiments.emulation.hosts import keepers
from experiments.emulation.hosts.keepers import HostsRefused
from experiments.environments.cluster.hosts import dealt
from experiments.execution import campaign
from experiments.execution.campaign_file import Request
from experiments.processes import executables

MIB = 2**20


@pytest.mark.parametrize(
    ("binding", "ranks", "hosts"),
    [
        ("packed", 4, "n1 n1 n2 n2"),
        ("packed", 5, "n1 n1 n1 n2 n2"),
        ("spread", 4, "n1 n2 n1 n2"),
        ("spread", 5, "n1 n2 n1 n2 n1"),
    ],
)
def test_ranks_are_dealt_out_in_blocks_or_in_turn(binding: str, ranks: int, hosts: str) -> None:
    assert dealt(("n1", "n2"), ranks, binding) == hosts.split()


@pytest.mark.ranks
@pytest.mark.parametrize(
    ("environments", "arms"),
    [
        ("hosts:2x500mbit", {"host", "host-again"}),
        pytest.param(
            "hosts:2x500mbit,hosts-charliecloud:2x500mbit",
            {"host", "host-again", "charliecloud"},
            marks=[pytest.mark.container, pytest.mark.rare],
        ),
    ],
)
def test_arms_take_turns_on_hosts_and_the_links_carry_what_a_ring_needs(
    request: pytest.FixtureRequest, tmp_path: Path, environments: str, arms: set[str]
) -> None:
    try:
        keepers.refuse()
    except HostsRefused as refused:
        pytest.skip(str(refused))
    if "charliecloud" in arms:
        request.getfixturevalue("image")  # or skip
        if executables.find("ch-run") is None:
            pytest.skip("ch-run is not installed")
    before = keepers.all_found().keys()
    asked = spec.restrict(
        spec.load("quick"), environments=environments, ranks="4", sizes="1MiB", blocks=1
    )
    factors = replace(
        asked.factors,
        operations=("allreduce",),
        transports=("hierarchical", "mpi"),
        kinds=("regular",),
    )
    short = replace(asked.measurement, time_cap=0.1, min_iterations=5, max_iterations=10)
    launches = replace(asked.launches, mpis=("openmpi",), bindings=("spread",))
    tiny = replace(asked, factors=factors, launches=launches, measurement=short)
    assert campaign.run(tiny, Request(tmp_path / "out", seed=1), Stages()) == []
    found = load(tmp_path / "out")
    assert set(found.cells["arm"]) == arms
    assert set(found.cells["environment"]) == set(environments.split(","))
    assert set(found.cells["company"]) == {" ".join(f"0000-{arm}" for arm in sorted(arms))}
    for launch in found.launches:
        tried = launch["environment"]["datapath"]
        if launch["launch"]["arm"] == "charliecloud":
            assert tried["uid"] != 0 and int(tried["capabilities_effective"], 16) == 0
        hosts = launch["environment"]["hosts"]
        assert [(each["name"], each["ranks"]) for each in hosts] == [("n1", [0, 2]), ("n2", [1, 3])]
        assert all(each["after"]["sent"] > each["before"]["sent"] + MIB for each in hosts)
        (ours,) = [each for each in launch["cells"] if each["transport"] == "hierarchical"]
        links = ours["links"]
        for carried in (*links["sent"], *links["received"]):  # packets that are lost go again
            assert 0.97 < carried / links["operations"] / MIB < 1.2
    assert keepers.all_found().keys() <= before
