"""The package's face: what `dir` and `import` show, and what that costs."""

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import hbmcomm


def test_dir_shows_the_public_names_and_no_others() -> None:
    assert dir(hbmcomm) == sorted(hbmcomm.__all__)
    assert {"Communicator", "empty", "ones_like", "__version__"} <= set(dir(hbmcomm))
    assert not {"TYPE_CHECKING", "collectives", "memory", "errors"} & set(dir(hbmcomm))


def test_every_name_but_communicators_and_plans_comes_without_mpi() -> None:
    program = """
import sys, hbmcomm
for name in set(dir(hbmcomm)) - {"Communicator", "Plan"}:
    getattr(hbmcomm, name)
print("mpi4py.MPI" in sys.modules)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout == "False\n", found.stderr


def test_the_version_is_the_installed_packages() -> None:
    assert hbmcomm.__version__ == metadata.version("hbmcomm")


def test_sources_without_a_package_have_no_known_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert hbmcomm.__version__ == "unknown"


def test_the_library_names_no_command_and_no_file_of_the_suite() -> None:
    suite = re.compile(r"invoke |\./inv|--emulate-hbw|--profiles|build/seccomp|experiments")
    files = [
        file
        for file in Path(hbmcomm.__file__).parent.rglob("*")
        if file.suffix in (".py", ".c", ".h", ".md")
    ]
    assert len(files) > 100
    found = [
        f"{file.name}: {line.strip()}"
        for file in files
        for line in file.read_text(encoding="utf-8").splitlines()
        if suite.search(line)
    ]
    assert found == []


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'hbmcomm' has no attribute 'comunicator'"):
        hbmcomm.comunicator  # noqa: B018
