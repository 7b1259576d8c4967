"""What both arms must share is named, and a changed file changes its hash."""

import hashlib
from importlib import metadata
from pathlib import Path

import numpy as np

from experiments.programs.machine import versions


def test_every_version_is_that_of_this_process() -> None:
    found = versions.versions()
    assert found["numpy"] == np.__version__
    assert found["mpi4py"] == metadata.version("mpi4py")
    assert found["memkind"]
    assert all(isinstance(version, str) and version for version in found.values())


def test_the_mpi_is_named_without_where_it_was_built() -> None:
    name = versions.versions()["mpi"]
    assert any(digit in name for digit in "0123456789")
    assert "package" not in name
    assert "\0" not in name


def test_a_file_that_cannot_be_read_is_told_as_not_found(tmp_path: Path) -> None:
    readable = tmp_path / "library"
    readable.write_bytes(b"code")
    assert versions._digest(readable) == hashlib.sha256(b"code").hexdigest()[:16]
    assert versions._digest(tmp_path / "none") == "not found"
