"""What a dry run says of a campaign's time and memory, against counts made by hand."""

from dataclasses import replace
from typing import Any

import pytest

from experiments.catalogue import spec
from experiments.driver.forecast import CELL, Host, duration, lines, seconds, together
from experiments.model.experiment import Experiment
from experiments.model.launch import Block, Launch
from experiments.schedule.blocks import schedule
from tests.benches import ask

GIB = 2**30
MANY = Host(cores=64, copied=8e9, cache=2**20)


def paper(**changes: object) -> Experiment:
    asked = spec.load("paper")
    return replace(asked, measurement=replace(asked.measurement, **changes))  # type: ignore[arg-type]


def of(asked: Experiment, host: Host = MANY) -> float:
    """Seconds of the whole campaign."""
    return seconds(launches(asked), host)


def launches(asked: Experiment) -> list[Launch]:
    return [launch for block in schedule(asked, 0) for launch in block.launches]


def test_buffers_of_the_largest_block_are_counted_by_kind() -> None:
    held = together(schedule(paper(), 0), MANY.cache)
    size = 16 * 2**20
    arm = 16 * 2 * size + 15 * size  # each rank sends and receives; the root gathers from 16
    assert list(held) == ["hbw", "regular"], "in the same order each time"
    assert held["hbw"] == 3 * arm  # host, host-again, Docker
    assert held["regular"] == 5 * arm  # and threads and processes
    assert held["hbw"] < 0.6 * 4 * GIB  # fits a quadrant of Knights Landing


def test_time_grows_with_the_cap_and_where_ranks_share_cores() -> None:
    assert len(launches(paper())) == 10 * 4 * 2 * 5
    usual, short, long = (
        replace(asked, launches=replace(asked.launches, blocks=1))
        for asked in (paper(), paper(time_cap=0.05), paper(time_cap=0.5))
    )
    assert 2 < of(long) / of(short) < 10
    assert of(usual, replace(MANY, cores=2)) > 1.2 * of(usual)


@pytest.mark.parametrize("name", ["cluster", "fusion_step"])
def test_time_grows_with_what_links_between_hosts_take(name: str) -> None:
    slow, fast = (
        of(spec.restrict(spec.load(name), environments=hosts, ranks="4", blocks=1), MANY)
        for hosts in ("hosts:4x100mbit", "hosts:4x1gbit")
    )
    assert slow > 4 * fast


def test_a_launch_takes_at_least_its_start() -> None:
    one = spec.restrict(paper(), environments="docker", sizes="1KiB", ranks="2", blocks=1)
    one = replace(one, launches=replace(one.launches, external=(), bindings=("packed",)))
    estimate = of(one)
    cells = 3 * 3 * 2 * 2 + 4  # operations, transports, kinds, localities; a copy for each buffer
    assert len(launches(one)) == 1
    assert 2.5 < estimate < 2.5 + cells * (0.1 + 0.05)


def test_each_arm_of_a_bench_counts_the_contenders_that_it_has() -> None:
    def bench(**flags: Any) -> float:
        return of(ask(2, sizes="64KiB", operations="bcast", blocks=1, **flags))

    one, two = bench(peers="openmpi"), bench(peers="openmpi,mpich")
    assert two == pytest.approx(2 * one)
    pickled = bench(peers="openmpi,mpich,pickle") - two
    assert 2 * CELL < pickled < 2 * (CELL + 0.05), "plain calls of one more beside each MPI"
    tuned = bench(peers="openmpi", tuned=True) - one
    with_pickle = bench(peers="openmpi,pickle", tuned=True) - bench(peers="openmpi,pickle")
    assert tuned == pytest.approx(with_pickle), "pickle takes part in the default setting alone"


def test_a_duration_for_a_user() -> None:
    assert [duration(time) for time in (42.4, 290, 3 * 3600 + 240)] == [
        "42 s",
        "5 min",
        "3 h 4 min",
    ]


def of_one_launch(size: int, *kinds: str) -> tuple[Block, ...]:
    """A block of one launch; each of two ranks holds two messages of a kind."""
    one = spec.restrict(paper(), environments="docker", ranks="2", blocks=1)
    launches = replace(one.launches, external=(), bindings=("packed",))
    varied = {"operations": ("bcast",), "sizes": (size,), "largest": {}, "kinds": kinds}
    factors = replace(one.factors, **varied)
    return schedule(replace(one, launches=launches, factors=factors), 0)


def test_lines_for_a_user() -> None:
    blocks = of_one_launch(GIB // 8, "hbw")
    time = duration(seconds(blocks[0].launches, MANY))
    assert lines(blocks, MANY, 8 * GIB, {4: 4 * GIB}) == [
        f"1 launches in 1 blocks: up to about {time}",
        "buffers alive at once, at most: hbw 0.50 GiB; available: 8.00 GiB; HBM: node 4: 4.00 GiB",
    ]


def test_what_does_not_fit_is_said_before_anything_starts() -> None:
    *_, last = lines(of_one_launch(2 * GIB, "regular"), MANY, 8 * GIB, {})
    assert "not all of it fits at once" in last and "smaller --sizes" in last
    asked = of_one_launch(GIB, "hbw", "regular")
    assert lines(asked, MANY, 64 * GIB, {4: 2 * GIB, 5: 2 * GIB})[-1] == last
    assert last not in lines(asked, MANY, 64 * GIB, {})
