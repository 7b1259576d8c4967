"""Guests of emulated machines: a disk for all of them, one machine for small tests, and visits.

A visit boots a machine once and runs there whatever the collected tests ask of it, one errand after
the other. Two are visited at a time, since a machine without KVM keeps one core busy. Where other
tests run beside visits, guests take the CPU time that these leave.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import pytest

from experiments.emulation import boot, description
from experiments.emulation import guest_disk as disks
from experiments.emulation.boot import Guest
from experiments.emulation.qemu_command import Disk
from experiments.environments import profiles
from experiments.environments.mpiexec import mpiexec
from experiments.environments.process import Container
from experiments.environments.vm import LAUNCHES, inside
from experiments.model.errors import Missing
from experiments.provision import system
from experiments.provision.image import PREFIX, Image

FOUND = "found.json"  # as rank programs call it
AT_A_TIME = 2  # visits
LEAST_PRIORITY = 19  # of nice(2)
ERRAND_PATIENCE = 600  # seconds


@pytest.fixture(scope="session")
def disk(engine: docker.DockerClient, image: Image) -> Disk:
    """What every guest boots from; skips, with the reason, where QEMU or root is missing."""
    lacking = system.ensure(yes=True, wanted=system.EMULATION)
    if lacking:
        pytest.skip(str(lacking))
    try:
        return disks.ensure(engine, image)
    except Missing as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def plain(disk: Disk) -> Iterator[Guest]:
    """A machine of one node; what a test leaves in it, the next one finds."""
    with boot.booted(description.load("plain"), disk) as guest:
        yield guest


@dataclass(frozen=True)
class Ran:
    """How a command in a guest ended: its code, its output, and the content of FOUND."""

    code: int
    output: str
    found: Any

    def right(self) -> Any:
        """What it found; fails with its words where it did not end well."""
        assert self.code == 0, self.output
        return self.found


@dataclass(frozen=True)
class There:
    """A guest as an errand sees it; `place` holds the folders of its commands."""

    guest: Guest
    place: Path

    def run(self, name: str, words: Sequence[str], *files: Path, root: bool = False) -> Ran:
        """A command over a folder of that name with copies of these files, as a launch runs it."""
        folder = self.place / f"{self.guest.description.name}-{name}"
        folder.mkdir()
        for file in files:
            shutil.copy(file, folder)
        named = [word.replace("FOLDER", str(LAUNCHES / folder.name)) for word in words]
        command = inside(self.guest.socket, folder, named, *(["--root"] if root else []))
        done = subprocess.run(
            command.argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=ERRAND_PATIENCE,
            check=False,
        )
        path = folder / FOUND
        return Ran(
            done.returncode, done.stdout, json.loads(path.read_text()) if path.exists() else None
        )

    def ranks(self, name: str, ranks: int, program: Sequence[str], *files: Path) -> Ran:
        """Ranks on the guest itself; FOLDER in the program's words is where the files are."""
        return self.run(name, ["env", *self._mpiexec(ranks, program)], *files)

    def contained(
        self,
        name: str,
        ranks: int,
        program: Sequence[str],
        *files: Path,
        machine: profiles.Machine,
        profile: str = "tuned",
        limit: str = "",
    ) -> Ran:
        """Ranks in a container of the guest; `limit` is of its memory, as Docker takes it."""
        self.guest.start_engine()
        allowed = profiles.options(profile, machine, ranks)
        folder = f"{LAUNCHES}/{self.guest.description.name}-{name}"
        options = allowed | {"volumes": {folder: {"bind": folder, "mode": "rw"}}}
        words = ["env", *self._mpiexec(ranks, program, contained=profile == "default")]
        line = Container("hbmcomm:openmpi", words, options).shell().replace("FOLDER", folder)
        if limit:
            line = line.replace("docker run", f"docker run --memory={limit} --memory-swap={limit}")
        return self.run(name, ["sh", "-c", line], *files, root=True)

    def root(self, line: str) -> str:
        """What a shell line says that root runs in the guest; it must end well."""
        with self.guest.agent() as connection:
            ended = connection.run("/bin/sh", "-c", line)
        assert ended.code == 0, ended.output
        return ended.output

    def _mpiexec(self, ranks: int, program: Sequence[str], contained: bool = False) -> list[str]:
        cpus = self.guest.description.cpus
        words = [f"{PREFIX}/bin/python", *program]
        argv, variables = mpiexec("openmpi", PREFIX, ranks, cpus, words, contained)
        variables |= {"OPENBLAS_NUM_THREADS": "1"}  # as inside.py has it, in containers too
        return [*(f"{name}={value}" for name, value in sorted(variables.items())), *argv]


def processor_time(guest: Guest) -> float:
    """Seconds that QEMU has kept cores busy so far."""
    fields = Path(f"/proc/{guest.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


Errand = Callable[[There], Any]


@dataclass(frozen=True)
class Brought:
    """What an errand brought, or the error that ended it; and seconds of a core, boot included."""

    found: Any
    seconds: float


@pytest.fixture(scope="session")
def visits(
    request: pytest.FixtureRequest,
    disk: Disk,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Future[dict[Errand, Brought]]]]:
    """{machine: what its errands brought}, of all that the collected tests ask for.

    An errand that leaves the machine another than it was goes last: its mark has last=True.
    """
    asked: dict[str, dict[Errand, bool]] = {}
    for item in request.session.items:
        for mark in item.iter_markers("visit"):
            machine, errand = mark.args
            asked.setdefault(machine, {})[errand] = mark.kwargs.get("last", False)
    place = tmp_path_factory.mktemp("visits")

    def visit(machine: str) -> dict[Errand, Brought]:
        brought = {}
        with boot.booted(description.load(machine), disk) as guest:
            booting = processor_time(guest)
            for errand in sorted(asked[machine], key=lambda errand: asked[machine][errand]):
                before = processor_time(guest)
                try:
                    outcome = errand(There(guest, place))
                except Exception as error:  # the test that asked for it fails, no other
                    outcome = error
                seconds = processor_time(guest) - before
                print(f"{machine}: {errand.__name__} took {seconds:.0f} s of a core")
                brought[errand] = Brought(outcome, booting + seconds)
        return brought

    def length(machine: str) -> float:
        """Ranks wait for each other in turns: a check takes the longer, the more there are."""
        return len(asked[machine]) + len(description.load(machine).cpu_nodes) / 2

    if "PYTEST_XDIST_WORKER" in os.environ:
        os.nice(LEAST_PRIORITY)
    order = sorted(asked, key=length, reverse=True)  # the longest first
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        yield {machine: pool.submit(visit, machine) for machine in order}
        pool.shutdown(cancel_futures=True)


@pytest.fixture
def visit(
    request: pytest.FixtureRequest, visits: dict[str, Future[dict[Errand, Brought]]]
) -> Brought:
    """How the errand of this test's mark `visit(machine, errand)` went."""
    mark = request.node.get_closest_marker("visit")
    assert mark is not None, "mark the test with visit(machine, errand)"
    machine, errand = mark.args
    return visits[machine].result()[errand]


@pytest.fixture
def brought(visit: Brought) -> Any:
    """What that errand brought; its error is this test's."""
    if isinstance(visit.found, Exception):
        raise visit.found
    return visit.found
