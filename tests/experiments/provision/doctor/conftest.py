"""Machines on which only the programs of a test are installed."""

from pathlib import Path

import pytest

from experiments.processes import executables


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder whose programs are the only ones installed."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def find(name: str) -> str | None:
        return str(folder / name) if (folder / name).exists() else None

    monkeypatch.setattr(executables, "find", find)
    return folder
