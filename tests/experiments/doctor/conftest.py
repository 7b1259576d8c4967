"""Machines on which only the programs of a test are installed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.processes import executables


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str, str], Path]:
    """install(name, script): makes a program of a shell script; no other one is installed."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def find(name: str) -> str | None:
        return str(folder / name) if (folder / name).exists() else None

    def make(name: str, script: str) -> Path:
        program = folder / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return program

    monkeypatch.setattr(executables, "find", find)
    return make
