"""Launches on emulated hosts: where ranks go, and a campaign from its file to its bytes."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.analysis.reading import load
from experiments.catalogue import spec
from experiments.console import Stages
from experiments.driver import campaign
from experiments.driver.campaign_file import Request
from experiments.emulation import keepers
from experiments.emulation.keepers import HostsRefused
from experiments.environments import enter
from experiments.environments.charliecloud import CharliecloudRanks
from experiments.environments.hosts import OnHosts, dealt
from experiments.processes import executables, tracking
from experiments.processes.executables import captured
from experiments.provision import passthrough
from tests.launched import LAUNCH
from tests.starting import MakeHosts

MIB = 2**20


def test_ranks_are_dealt_out_in_blocks_or_in_turn() -> None:
    for binding, ranks, hosts in (
        ("packed", 4, "n1 n1 n2 n2"),
        ("packed", 5, "n1 n1 n1 n2 n2"),
        ("spread", 4, "n1 n2 n1 n2"),
        ("spread", 5, "n1 n2 n1 n2 n1"),
    ):
        assert dealt(("n1", "n2"), ranks, binding) == hosts.split()


@pytest.mark.ranks
def test_a_daemon_of_a_launcher_is_nobody_and_has_the_folders_that_it_needs(
    hosts: MakeHosts, tmp_path: Path
) -> None:
    """Though nobody reaches the folders above them."""
    ways, own = hosts().ways, passthrough.owner()
    tree, launch, prefix = (tmp_path / name for name in ("tree", "launch", "prefix"))
    for folder in (tree, launch, prefix):
        folder.mkdir()
    tmp_path.chmod(0o700)
    os.chown(launch, *own)
    image = CharliecloudRanks(tree, Path("/image"), user=own)
    command = OnHosts(prefix, 2, ways, image).command(replace(LAUNCH, ranks=2), launch)
    line = f"id -u; hostname; ls /mnt; touch $HOME/made {prefix}/x /mnt/tree/x; ls {tmp_path}"
    words = [*ways.controller, str(enter.LAUNCHER), "n2", f"exec 2>&1; {line}"]
    done = captured(words, env={**os.environ, **command.environment})
    assert done.stdout.split("\n")[:5] == [str(own[0]), "n2", "launch", "prefix", "tree"]
    assert done.stdout.count("Permission denied") == 3
    assert (launch / "made").stat().st_uid == own[0]


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
    results = load(tmp_path / "out")
    assert set(results.cells["arm"]) == arms
    assert set(results.cells["environment"]) == set(environments.split(","))
    assert set(results.cells["company"]) == {" ".join(f"0000-{arm}" for arm in sorted(arms))}
    for launch in results.launches:
        tried = launch.facts.datapath
        if launch.launch.arm == "charliecloud":
            assert tried["uid"] != 0 and int(tried["capabilities_effective"], 16) == 0
            written = tmp_path / "out" / "launches" / "0000-charliecloud.npz"
            assert written.stat().st_uid == passthrough.owner()[0]  # outside of the container too
        hosts = launch.facts.recorded["hosts"]
        assert [(host["name"], host["ranks"]) for host in hosts] == [("n1", [0, 2]), ("n2", [1, 3])]
        assert all(host["after"]["sent"] > host["before"]["sent"] + MIB for host in hosts)
        (ours,) = [cell for cell in launch.cells if cell.transport == "hierarchical"]
        links = ours.links
        for carried in (*links.sent, *links.received):  # packets that are lost go again
            assert 0.97 < carried / links.operations / MIB < 1.2
    own = tracking.identity(os.getpid())  # other tests make hosts at the same time
    assert not [name for name in keepers.all_found() if name.startswith(own)]
