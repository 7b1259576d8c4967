"""A campaign of two blocks, and its folder."""

from pathlib import Path

import pytest

from experiments.catalogue import spec
from experiments.model.launch import Block
from experiments.results import store
from experiments.schedule.blocks import schedule


@pytest.fixture
def blocks() -> tuple[Block, ...]:
    return schedule(
        spec.restrict(
            spec.load("quick"), environments="host,docker", profiles="tuned", sizes="1KiB", blocks=2
        ),
        1,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store.create(tmp_path / "campaign", {"name": "quick"})
    return tmp_path / "campaign"
