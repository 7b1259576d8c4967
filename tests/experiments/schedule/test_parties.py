"""Launches that fit take turns together; else each arm with the reference arm, launched again."""

from collections.abc import Sequence

import pytest

from experiments.catalogue import spec
from experiments.model.environment import DOCKER
from experiments.model.launch import Block, Launch
from experiments.schedule.blocks import parties, schedule


@pytest.fixture
def block() -> Block:
    asked = spec.restrict(
        spec.load("quick"), environments="host,docker", profiles="tuned,default", sizes="1KiB"
    )
    return schedule(asked, 1)[0]


def arms(split: Sequence[Sequence[Launch]]) -> list[list[str]]:
    return [[launch.arm for launch in party] for party in split]


def test_all_that_fit_take_turns_together(block: Block) -> None:
    assert parties(block, block.launches, lambda _: True) == [list(block.launches)]


def test_else_the_reference_arm_is_in_a_pair_with_each(block: Block) -> None:
    split = parties(block, block.launches, lambda launches: len(launches) <= 2)
    assert [party[0] for party in arms(split)] == ["host"] * 3
    others = [launch.arm for launch in block.launches if launch.arm != "host"]
    assert [party[1] for party in arms(split)] == others
    first, *again = [party[0].name for party in split]
    assert first == "0000-host"
    assert again == [f"0000-host-beside-{arm}" for arm in others[1:]]
    assert len({launch.name for party in split for launch in party}) == 6


def test_what_fits_alone_runs_alone(block: Block) -> None:
    split = parties(block, block.launches, lambda _: False)
    assert split == [[launch] for launch in block.launches]


def test_a_block_without_the_reference_arm_has_no_pairs(block: Block) -> None:
    others = [launch for launch in block.launches if launch.environment == DOCKER]
    bare = Block(0, tuple(others))
    assert parties(bare, others, lambda launches: len(launches) <= 1) == [
        [launch] for launch in others
    ]


def test_what_is_left_when_the_reference_is_finished_has_it_beside_it_again(block: Block) -> None:
    left = [launch for launch in block.launches if launch.environment == DOCKER]
    split = parties(block, left, lambda _: True)
    assert [[launch.name for launch in party] for party in split] == [
        [f"0000-host-beside-{launch.arm}", launch.name] for launch in left
    ]


def test_the_reference_arm_alone_takes_no_turns(block: Block) -> None:
    host = [launch for launch in block.launches if launch.arm == "host"]
    assert parties(Block(0, tuple(host)), host, lambda _: True) == [host]
