"""memkind's own HBM on this machine: none by itself, node 0 where a variable names it."""

import sys
from pathlib import Path

import pytest

import hbmcomm
from experiments.emulation import memkind_alone
from experiments.processes.executables import captured

pytestmark = [
    pytest.mark.skipif(
        hbmcomm.memkind_version() is None,
        reason="libmemkind is not installed (apt-get install libmemkind0)",
    ),
    pytest.mark.skipif(
        not Path("/proc/self/numa_maps").exists(), reason="a kernel without NUMA has no numa_maps"
    ),
]


def asked() -> str:
    """What a new process prints."""
    done = captured([sys.executable, "-m", memkind_alone.__name__])
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_it_is_reported_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMKIND_HBW_NODES", "0")
    assert asked() == "[0]\n"


def test_without_hbm_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMKIND_HBW_NODES", raising=False)
    if hbmcomm.topology().hbm.nodes:
        pytest.skip("this machine has HBM")
    assert asked() == "[]\n"
