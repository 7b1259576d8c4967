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


def test_names_that_need_no_mpi_come_without_it() -> None:
    program = """
import sys, hbmcomm
for name in set(dir(hbmcomm)) - {"Communicator", "Flags", "Plan", "SharedArray", "Watch"}:
    getattr(hbmcomm, name)
print("mpi4py.MPI" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


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
    mentions = [
        f"{file.name}: {line.strip()}"
        for file in files
        for line in file.read_text(encoding="utf-8").splitlines()
        if suite.search(line)
    ]
    assert mentions == []


def test_every_attribute_of_every_module_can_be_inspected() -> None:
    """vLLM asks `hasattr(value, "__dict__")` of the attributes of all modules that are loaded."""
    program = """
import importlib, importlib.util, pkgutil, sys
import hbmcomm
has_torch = importlib.util.find_spec("torch") is not None
for found in pkgutil.walk_packages(hbmcomm.__path__, "hbmcomm."):
    if has_torch or not found.name.startswith("hbmcomm.torch"):
        importlib.import_module(found.name)
modules = {name: each for name, each in sys.modules.items() if name.startswith("hbmcomm")}
for name, module in modules.items():
    for attribute, value in vars(module).items():
        try:
            hasattr(value, "__dict__"), dir(value)
        except Exception as error:
            print(f"{name}.{attribute}: {type(error).__name__}: {error}")
print("no torch" * (not has_torch), len(modules) > 100)
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.endswith(" True\n") and done.stdout.count("\n") == 1, (
        done.stdout + done.stderr
    )


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'hbmcomm' has no attribute 'comunicator'"):
        hbmcomm.comunicator  # noqa: B018
