"""A campaign of two blocks, and its folder."""

from pathlib import Path

import pytest

from experiments.model.launch import Block
from experiments.results import store
from tests.experiments.driver.instant import host_and_docker


@pytest.fixture
def blocks() -> tuple[Block, ...]:
    return host_and_docker(blocks=2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store.create(tmp_path / "campaign", {"name": "quick"})
    return tmp_path / "campaign"
