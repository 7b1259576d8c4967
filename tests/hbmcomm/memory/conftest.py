"""Machines to read (real files under a temporary root) and Python processes to try things in.

The trees in machines/ are written after published output of such machines, with bandwidths of the
order that their makers give.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import hbmcomm
from hbmcomm.memory.dax.mapping import DeviceMappings
from hbmcomm.memory.policy import kinds
from hbmcomm.memory.policy.kinds import Kind, resolve
from hbmcomm.memory.shared.arena import Arena
from hbmcomm.memory.shared.arena_creation import create_arena
from hbmcomm.memory.shared.segment_cache import SegmentCache
from hbmcomm.memory.topology.model import Topology
from tests.hbmcomm.memory.machine_files import write_machine

HERE = Path(__file__).parent
CONTROL = 100_000
"""Bytes of a control block."""
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


class Rank(NamedTuple):
    """A thread that plays a rank; the other threads attach its memory as another process's."""

    number: int
    size: int
    allgather: Callable[[Any], Sequence[Any]]
    segments: SegmentCache
    mappings: DeviceMappings

    def arena(self, **more: Any) -> Arena:
        """This rank's part in an arena of regular memory."""
        regular = functools.partial(resolve, "regular")
        more.setdefault("segments", self.segments)
        return create_arena(self.allgather, self.number, self.size, regular, CONTROL, **more)[0]

    def misled(self, lie: Callable[[Any, Any], Any]) -> Rank:
        """This rank, which receives lie(offer, notices) in place of rank 1's offer."""

        def allgather(value: Any) -> Sequence[Any]:
            shown = list(self.allgather(value))
            if getattr(shown[1], "offer", None) is not None:
                shown[1] = shown[1]._replace(offer=lie(shown[1].offer, shown))
            return shown

        return self._replace(allgather=allgather)


class Cast:
    """Threads as ranks; called again, they still have what they had."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.exchanges = 0
        self.segments = [SegmentCache() for _ in range(size)]
        self.mappings = [DeviceMappings() for _ in range(size)]

    def __call__(self, part: Callable[[Rank], Any]) -> list[Any]:
        """What each rank's part returns, or the error that it raises; no rank is left waiting."""
        values: list[Any] = [None] * self.size
        meeting = threading.Barrier(self.size, timeout=20)

        def play(number: int) -> Any:
            def allgather(value: Any) -> Sequence[Any]:
                values[number] = value
                if meeting.wait() == 0:
                    self.exchanges += 1
                shown = list(values)
                meeting.wait()
                return shown

            try:
                return part(
                    Rank(number, self.size, allgather, self.segments[number], self.mappings[number])
                )
            except (hbmcomm.HbmcommError, ValueError) as error:
                return error

        with ThreadPoolExecutor(self.size) as executor:
            return list(executor.map(play, range(self.size)))

    def arenas(self) -> list[Any]:
        """An arena of all ranks, as each of them has it, or the error that it raises."""
        return self(Rank.arena)


@pytest.fixture
def cast() -> type[Cast]:
    return Cast


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CONFIGURATION:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def emulated_hbm(nothing_configured: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMKIND_HBW_NODES", "0")


@pytest.fixture
def machine(tmp_path: Path) -> Callable[[str], Machine]:
    def write(name: str) -> Machine:
        described = tomllib.loads((HERE / "machines" / f"{name}.toml").read_text())
        root = tmp_path / name
        write_machine(described, root)
        return Machine(root / "sys", root / "proc")

    return write


@pytest.fixture
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


@pytest.fixture
def needs_memkind() -> Iterator[None]:
    if hbmcomm.memkind_version() is None:
        pytest.skip("libmemkind is not installed (apt-get install libmemkind0)")
    yield
