"""Names, units and rounding."""

import math
from types import SimpleNamespace

import pandas as pd

from experiments.model import quantities
from experiments.model.quantities import NOTHING
from plots.layout import labels
from tests.campaigns import find


def test_bytes_are_in_binary_units() -> None:
    texts = {1: "1 B", 1000: "1000 B", 1024: "1 KiB", 1536: "1.5 KiB", 16 * 2**20: "16 MiB"}
    assert {count: quantities.bytes_text(count) for count in texts} == texts


def test_a_decade_has_no_decimals() -> None:
    ticks = [quantities.tick_text(10.0**power) for power in (-7, -6, -4, -3, 0, 1)]
    assert ticks == ["100 ns", "1 µs", "100 µs", "1 ms", "1 s", "10 s"]


def test_a_ratio_has_its_interval_beside_it() -> None:
    cell = SimpleNamespace(ratio=1.0, low=0.9, high=1.1)
    assert labels.ratio_and_interval(cell) == "1.00 (95 % interval 0.90 to 1.10)"
    cell.low = cell.high = math.nan
    assert labels.ratio_and_interval(cell) == "1.00 (no interval)"
    assert quantities.interval_text(0.981, 1.1) == "0.98 to 1.10"
    assert quantities.interval_text(math.nan, math.nan) == NOTHING


def test_a_small_p_is_never_zero() -> None:
    assert quantities.p_text(0.0004) == "< 0.001"
    assert quantities.p_text(0.03125) == "0.031"


def test_emulated_memory_is_named_as_such() -> None:
    assert labels.kind_name("hbw", False) == "hbw (HBM)"
    assert labels.kind_name("hbw", True) == "hbw (emulated HBM)"


def test_the_setting_names_only_what_all_rows_share() -> None:
    frame = pd.DataFrame({"binding": ["packed", "spread"], "locality": "local", "cache": "warm"})
    assert labels.setting(frame) == "local memory, warm cache"


def test_bandwidths_are_in_powers_of_ten() -> None:
    assert quantities.bandwidth_text(12.34e9) == "12.3 GB/s"
    assert quantities.bandwidth_text(5e6) == "0.00500 GB/s"
    assert quantities.bandwidth_text(float("nan")) == NOTHING


def test_an_arm_is_named_by_its_levels() -> None:
    inside, there = "docker-tuned-per-rank", "Docker in emulated gh200, default, one container"
    names = {
        "host": ("host", "host"),
        "host-again": ("host again", "host-again"),
        "mpich-ucx": ("mpich-ucx", "mpich-ucx"),
        inside: ("Docker, tuned, a container per rank", inside),
        "vm-knl-snc4-flat": ("emulated knl-snc4-flat", "vm"),
        "vm-docker-gh200-default-one": (there, "vm-docker-default-one"),
        "podman": ("Podman", "podman"),
    }
    assert {arm: (labels.arm_name(arm), labels.short_arm(arm)) for arm in names} == names


def test_rows_of_an_emulated_machine_alert_the_reader() -> None:
    arms = ("vm-knl-snc4-flat", "vm-docker-knl-snc4-flat-tuned-one")
    campaign = find(arms=arms, emulated=False, machine="knl-snc4-flat (tcg)", blocks=2)
    for frame in (campaign.times, campaign.speedups, campaign.transports):
        assert labels.alerts(frame) == [campaign.machine]
