"""hwloc is asked for real, about this machine and about one that it reads from a file."""

from pathlib import Path

import pytest

from hbmcomm.memory import machine

MACHINES = Path(__file__).parent / "machines"


def test_hwloc_names_only_special_nodes_or_is_not_there() -> None:
    assert all(isinstance(node, int) and name for node, name in machine.subtypes().items())


def test_the_subtype_of_each_node_that_has_one_is_read(python) -> None:
    program = """
from cffi import FFI
from hbmcomm.memory import machine
try:
    FFI().dlopen(machine.SONAME)
except OSError:
    print("missing")
else:
    print(machine.subtypes())
"""
    result = python(program, HWLOC_XMLFILE=str(MACHINES / "hwloc_hbm.xml"))
    if result.stdout == "missing\n":
        pytest.skip("libhwloc is not installed (it comes with libmemkind0)")
    assert result.stdout == "{1: 'HBM'}\n", result.stderr


def test_without_hwloc_nothing_is_known(python) -> None:
    result = python(
        'from hbmcomm.memory import machine; machine.SONAME = "libhwloc.so.none"; '
        "print(machine.subtypes())"
    )
    assert result.stdout == "{}\n", result.stderr
