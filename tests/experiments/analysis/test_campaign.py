"""What a campaign asked for, found, and could not measure."""

from pathlib import Path

import pytest

from experiments.analysis.campaign import Campaign, absent_containers
from experiments.analysis.page_placement import frame
from experiments.analysis.reading import load
from experiments.analysis.selection import container_arms
from tests.campaigns import find


@pytest.fixture(scope="module")
def quick(campaign_folder: Path) -> Campaign:
    return load(campaign_folder)


def test_a_campaign_gives_times_speedups_and_container_ratios(quick: Campaign) -> None:
    assert set(quick.times["arm"]) == {"host", "docker-default-one", "docker-tuned-one"}
    assert set(quick.speedups["kind"]) == {"hbw"}
    assert set(quick.containers["arm"]) == {"docker-default-one", "docker-tuned-one"}
    assert set(quick.containers["profile"]) == {"default", "tuned"}
    assert quick.placements.empty
    assert 0 < quick.floor < 0.2
    assert quick.unmeasured == {}


def test_caveats_come_from_what_was_recorded_and_from_the_copies(quick: Campaign) -> None:
    assert quick.confounders.interpreters == {"host": "3.11.7", "docker": "3.11.2"}
    assert [*quick.confounders.straying_copies["arm"]] == ["docker-default-one", "docker-tuned-one"]


def test_what_containers_lost_of_the_data_path_is_found(quick: Campaign) -> None:
    (loss,) = quick.data_paths.losses
    assert (loss.mpi, loss.arm, loss.ways) == ("openmpi", "docker-default-one", ("single copy",))
    assert (loss.trial, loss.outcome) == ("kcmp", "refused (EPERM)")
    assert loss.kept_in == ("docker-tuned-one",)


def test_the_twin_is_no_arm_of_its_own() -> None:
    campaign = find()
    assert "host-again" not in set(campaign.times["arm"]) | set(campaign.containers["arm"])


def test_ratios_are_those_of_the_model() -> None:
    campaign = find(
        emulated=False, bindings=("packed", "spread"), localities=("local", "remote"), blocks=8
    )
    largest = campaign.speedups[campaign.speedups["bytes"] == 4194304]
    assert largest["ratio"].to_numpy() == pytest.approx(3.2, rel=0.06)
    slower = campaign.transports.groupby("transport")["ratio"].median()
    assert dict(slower) == pytest.approx({"mpi": 2.0, "pickle": 3.6}, rel=0.02)
    mean = campaign.placements.groupby("factor")["ratio"].median()
    assert mean["binding"] == pytest.approx(1.1, rel=0.02)
    assert mean["locality"] == pytest.approx(1.4, rel=0.02)


def test_a_missing_arm_keeps_its_reason(dockerless_folder: Path) -> None:
    campaign = load(dockerless_folder)
    assert campaign.unmeasured["docker"].startswith("no engine answers")
    assert campaign.containers.empty


def test_a_level_that_every_launch_skipped_keeps_its_reason(skipping_folder: Path) -> None:
    campaign = load(skipping_folder)
    assert campaign.unmeasured == {"hbw": "this machine has no high-bandwidth memory"}
    assert campaign.speedups.empty


def test_the_benchmark_in_c_is_no_container_and_is_compared_with_the_hosts_mpi() -> None:
    campaign = find(
        arms=("host", "host-again", "docker-tuned-one", "imb"), mpis=("impi", "mpich"), blocks=8
    )
    assert set(campaign.containers["arm"]) == {"docker-tuned-one"}
    assert set(campaign.transports["transport"]) == {"mpi", "pickle"}
    assert set(campaign.python["mpi"]) == {"impi"}
    assert campaign.python["ratio"].to_numpy() == pytest.approx(1.25, rel=0.06)
    assert find(blocks=2).python.empty


def test_every_ratio_has_its_verdict() -> None:
    campaign = find(blocks=8)
    dear = campaign.containers[campaign.containers["bytes"] == 4194304]
    assert set(dear["verdict"]) == {"differs"}
    assert set(campaign.containers["verdict"]) == {"differs", "bounded"}
    assert set(find(arms=("host", "docker-tuned-one"), blocks=2).containers["verdict"]) == {
        "too few blocks"
    }


def test_what_is_missing_may_be_an_engine_or_one_of_its_arms() -> None:
    missing = {"hbw": "", "podman": "", "docker-privileged-one": "", "host": "", "mpich": ""}
    assert absent_containers(missing) == ["podman", "docker-privileged-one"]


EMULATED = {"arms": ("vm-knl-snc4-flat", "vm-docker-knl-snc4-flat-tuned-one"), "emulated": False}


def test_every_row_of_an_emulated_machine_says_so() -> None:
    campaign = find(**EMULATED, machine="knl-snc4-flat (tcg)", blocks=2)
    assert campaign.machine.startswith("Emulated machine knl-snc4-flat (tcg):")
    for table in (campaign.times, campaign.speedups, campaign.transports):
        assert set(table["emulated_machine"]) == {"knl-snc4-flat (tcg)"}
    plain = find(blocks=2)
    assert plain.machine == ""
    assert set(plain.times["emulated_machine"]) == {"no"}


def test_without_a_host_no_container_has_a_ratio() -> None:
    campaign = find(**EMULATED, machine="knl-snc4-flat (tcg)", blocks=2)
    assert campaign.containers.empty and campaign.groups.empty
    assert container_arms(find(blocks=2).times) == ["docker-tuned-one"]


def test_places_and_pages_come_from_the_launches(emulated_folder: Path) -> None:
    campaign = load(emulated_folder)
    (page_map,) = campaign.page_maps
    assert page_map.machine == "knl-snc4-flat (tcg)"
    assert len(frame(campaign.launches)) == 2 * 2 * 2  # arms, ranks, kinds
