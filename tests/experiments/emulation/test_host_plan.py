"""The lines that make emulated hosts, and what cannot be asked for."""

import pytest

from experiments.emulation.host_plan import Plan, delaying, seconds, shaping
from experiments.model.errors import SpecError
from experiments.model.quantities import parse_rate, rate_text
from tests.refusals import refusal


def test_links_that_are_there_are_only_put_on_the_switch() -> None:
    lines = Plan(2, delay="1ms").of_switch({"n1": 11, "n2": 12}, has_links=True)
    assert "ip link set n2 master switch up" in lines
    assert not [line for line in lines if "veth" in line]


def test_a_kernel_with_netem_delays_what_is_shaped() -> None:
    assert delaying("n1", "0.5ms") == (
        "tc qdisc replace dev n1 parent 1: netem delay 0.5ms limit 10000"
    )


def test_delays() -> None:
    for text, delay in {"": 0, "500us": 5e-4, "0.5ms": 5e-4, "1s": 1.0}.items():
        assert seconds(text) == pytest.approx(delay), text


def test_what_is_no_delay() -> None:
    for text in ("1", "1 ms", "-1ms", "1min", "2s"):
        answer = refusal(SpecError, Plan, 2, delay=text)
        assert "write a number and one of us, ms, s, at most 1s" in answer, text


def test_rates() -> None:
    for text, rate in {"8bit": 8, "1kbit": 1e3, "2.5mbit": 2.5e6, "1gbit": 1e9}.items():
        assert (parse_rate(text), rate_text(rate)) == (rate, text)


def test_what_is_no_rate() -> None:
    for text in ("", "1", "1 gbit", "1Gbit", "0mbit", "-1gbit", "1gbps", "gbit"):
        answer = refusal(SpecError, Plan, 2, text)
        assert "write a number and one of bit, kbit, mbit, gbit" in answer, text


def test_a_burst_is_a_millisecond_of_the_rate_or_some_packets() -> None:
    assert "burst 1250000 " in shaping("eth0", "10gbit")
    assert "burst 16384 " in shaping("eth0", "10mbit")


def test_how_many_hosts_there_can_be() -> None:
    for count in (0, -1, 101):
        answer = refusal(SpecError, Plan, count)
        assert f"{count} hosts were asked for; there can be 1 to 100" in answer
