"""Boots an emulated machine, waits until its guest answers, and ends it.

One process of QEMU, whose end ends everything in it: nothing that a guest writes outlives it.
"""

import contextlib
import os
import shutil
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from experiments.emulation import qemu_command
from experiments.emulation.machine import MIB, Description
from experiments.guests import agent
from experiments.guests import disk as disks
from experiments.guests.agent import Agent, GuestLost
from experiments.guests.disk import Disk
from experiments.model.errors import ExperimentsError
from experiments.processes import executables, scratch, tracking
from experiments.provision.qemu import accelerator, qemu_binary

PATIENCE = 120.0  # seconds until a guest answers; with TCG it takes some five
ENGINE_PATIENCE = 180.0  # seconds until the engine in a guest answers
END_PATIENCE = 5.0  # seconds
POLL = 0.1  # seconds
LAST_LINES = 8  # of the console, in the message of a machine that does not boot
MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")  # bytes; what is free may vary
ROOM = 64 * MIB  # bytes; an engine in the guest and three containers wrote 3 MiB
START_ENGINE = "/usr/local/lib/guest/start-engine"


class BootFailed(ExperimentsError):
    """The machine does not come up; the text holds its last words."""


@dataclass(frozen=True)
class Guest:
    """A machine that runs and answers.

    Attributes:
        socket: of its agent, which serves one connection at a time.
        console: file with what its kernel said.
        accelerator: "kvm" or "tcg".
        disk: what it was booted from.
    """

    description: Description
    disk: Disk
    accelerator: str
    socket: Path
    console: Path
    process: "subprocess.Popen[bytes]"

    @contextlib.contextmanager
    def agent(self) -> Iterator[Agent]:
        """A connection to the agent.

        Raises:
            GuestLost: the guest does not answer; with its last words.
        """
        try:
            with agent.connected(self.socket) as connection:
                yield connection
        except GuestLost as lost:
            raise GuestLost(f"{self.description.name}: {lost}{_last_words(self.console)}") from None

    def death(self) -> str:
        """How QEMU ended, with the guest's last words; "" while it runs."""
        code = self.process.poll()
        return "" if code is None else f"QEMU ended with code {code};{_last_words(self.console)}"

    def start_engine(self) -> None:
        """Start the engine in the guest, unless it runs."""
        with self.agent() as connection:
            found = connection.run(START_ENGINE, patience=ENGINE_PATIENCE)
        if found.code:
            raise BootFailed(
                f"the engine in {self.description.name} does not start: {found.output.strip()}"
            )


def refuse(description: Description, base: str) -> None:
    """Say what lacks before minutes are spent on an image and a disk.

    Args:
        base: base image: "auto", "bootstrap" or an image's name.

    Raises:
        QemuMissing, GuestMissing, BootFailed: each says what to do.
    """
    qemu_binary.version()
    disks.refuse(base)
    wanted = description.memory_bytes + sum(device.given_bytes for device in description.dax)
    if wanted > MEMORY:
        raise BootFailed(
            f"{description.name} has {wanted // MIB} MiB of memory and this machine "
            f"{MEMORY // MIB} MiB; make its nodes smaller"
        )
    writes = Path(os.environ.get("TMPDIR", "/var/tmp"))  # where QEMU keeps what a guest writes
    try:
        free = shutil.disk_usage(writes).free
    except OSError as error:
        raise BootFailed(
            f"what a guest writes is kept in {writes}: {error.strerror}; set TMPDIR to a folder"
        ) from None
    if free < ROOM:
        raise BootFailed(
            f"what a guest writes is kept in {writes}, which has {free // MIB} MiB left and needs "
            f"{ROOM // MIB}; make room, or set TMPDIR to another folder"
        )


@contextlib.contextmanager
def booted(
    description: Description, disk: Disk, say: Callable[[str], None] = print
) -> Iterator[Guest]:
    """The machine, from its first answer until the block ends.

    The thread that enters must outlive the block: QEMU ends with it, as it does with the process.

    Raises:
        QemuMissing, BootFailed: each says what to do.
    """
    with scratch.folder(scratch.SHORT, "hbmcomm-guest-") as place:
        files = _files(disk, place)
        accelerated = accelerator.best()
        say(f"{description.name}: booting with {accelerated.upper()}")
        began = time.monotonic()
        words = _command(qemu_command.arguments(description, files, accelerated))
        log = place / "qemu.log"
        process = _start(words, log)
        try:
            guest = Guest(description, disk, accelerated, files.agent, files.console, process)
            _await(guest, log)
            say(f"{description.name}: up after {time.monotonic() - began:.1f} s")
            yield guest
        finally:
            _end(process)


def shell(description: Description, disk: Disk) -> int:
    """The machine with a shell on this terminal; QEMU's exit code once it has ended."""
    with scratch.folder(scratch.SHORT, "hbmcomm-guest-") as place, _terminal_kept():
        arguments = qemu_command.arguments(
            description, _files(disk, place), accelerator.best(), shell=True
        )
        return subprocess.run(_command(arguments), check=False).returncode


@contextlib.contextmanager
def _terminal_kept() -> Iterator[None]:
    """This terminal's settings, which QEMU changes, as they were: a QEMU that is killed cannot."""
    if not os.isatty(0):
        yield
        return
    settings = termios.tcgetattr(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSANOW, settings)


def _files(disk: Disk, place: Path) -> qemu_command.Files:
    return qemu_command.Files(
        kernel=disk.kernel,
        initramfs=disk.initramfs,
        disk=disk.image,
        agent=place / "agent",
        console=place / "console.log",
    )


def _command(arguments: list[str]) -> list[str]:
    """QEMU, ended with whoever started it."""
    until = [executables.find("setpriv") or "setpriv", "--pdeathsig=TERM", "--"]
    return [*until, qemu_binary.program(), *arguments[1:]]


def _start(words: list[str], log: Path) -> "subprocess.Popen[bytes]":
    with log.open("wb") as output:
        return subprocess.Popen(
            words,
            env={**os.environ, tracking.MARK: tracking.new_mark()},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C reaches the driver, which then ends the machine
        )


def _await(guest: Guest, log: Path) -> None:
    """Wait for the agent's first answer, or for QEMU's end."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and guest.process.poll() is None:
        with contextlib.suppress(GuestLost), agent.connected(guest.socket, POLL * 10):
            return
    told = log.read_text(encoding="utf-8", errors="replace").strip()
    what = "ended" if guest.process.poll() is not None else f"is silent for {PATIENCE:.0f} s"
    raise BootFailed(
        f"the emulated machine {guest.description.name} {what} while it booted: "
        f"{told or 'QEMU said nothing'}{_last_words(guest.console)}"
    )


def _last_words(console: Path) -> str:
    try:
        said = console.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        said = []
    if not said:
        return ""
    return "".join(f"\n    {line}" for line in ["the guest's last words:", *said[-LAST_LINES:]])


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(END_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
