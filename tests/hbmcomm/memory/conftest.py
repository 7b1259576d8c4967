"""Machines to read (real files under a temporary root) and Python processes to try things in.

The trees in machines/ are written after published output of such machines, with bandwidths of the
order that their makers give.
"""

import functools
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import hbmcomm
from hbmcomm.memory import kinds
from hbmcomm.memory.kinds import Kind
from hbmcomm.memory.topology import Topology
from tests.hbmcomm.memory.machine_files import write_machine

HERE = Path(__file__).parent
CONFIGURATION = ("MEMKIND_HBW_NODES", "MEMKIND_HBW_THRESHOLD", "MEMKIND_DAX_KMEM_NODES")


class Machine(NamedTuple):
    """The roots of a machine's /sys and /proc."""

    sysfs: Path
    procfs: Path

    @property
    def topology(self) -> Topology:
        return hbmcomm.topology(sysfs=str(self.sysfs), procfs=str(self.procfs))

    def kind(
        self,
        name: str,
        cpus: tuple[int, ...] = (0,),
        allowed: tuple[int, ...] | None = None,
        nodes: tuple[int, ...] | None = None,
    ) -> Kind:
        """What a name means there for a thread on `cpus` that may use the nodes `allowed`."""
        topology = self.topology
        usable = topology.memory_nodes if allowed is None else allowed
        return kinds.choose(name, topology, cpus, usable, nodes)


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CONFIGURATION:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def emulated_hbm(nothing_configured: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMKIND_HBW_NODES", "0")


def written(root: Path, name: str) -> Machine:
    """The files of a recorded machine, in a folder of its name."""
    described = tomllib.loads((HERE / "machines" / f"{name}.toml").read_text())
    write_machine(described, root / name)
    return Machine(root / name / "sys", root / name / "proc")


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Machine]:
    """machine(name): a recorded machine, written once; tests only read it."""
    return functools.cache(functools.partial(written, tmp_path_factory.mktemp("machines")))


@pytest.fixture
def own_machine(tmp_path: Path) -> Callable[[str], Machine]:
    """own_machine(name): a recorded machine for a test that changes its files."""
    return functools.partial(written, tmp_path)


@pytest.fixture(scope="session")
def python() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a program in its own process, with HBM emulated and system calls refused at will."""

    def run(
        program: str,
        emulate: bool = True,
        refuse: tuple[str, ...] = (),
        as_error: str = "EPERM",
        **environ: str,
    ) -> subprocess.CompletedProcess[str]:
        start = "from tests.hbmcomm.memory import refusing\n"
        start += f"refusing.refuse({refuse!r}, {as_error!r})\n" if refuse else ""
        plain = {name: value for name, value in os.environ.items() if name not in CONFIGURATION}
        emulation = {"MEMKIND_HBW_NODES": "0"} if emulate else {}
        return subprocess.run(
            [sys.executable, "-c", start + program],
            env={**plain, **emulation, **environ},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def needs_memkind() -> None:
    if hbmcomm.memkind_version() is None:
        pytest.skip("libmemkind is not installed (apt-get install libmemkind0)")
