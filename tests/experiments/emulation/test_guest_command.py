"""`./inv vm` in a guest; tests/commands/test_commands.py has its list and its mistakes."""

import os
import pty
import select
import signal
import sys
import termios
import time
from pathlib import Path

import pytest

from experiments.console import Stages
from experiments.emulation import guest_command
from experiments.emulation.qemu_command import Disk
from experiments.model.errors import ExperimentsError
from experiments.processes.executables import captured

ROOT = Path(__file__).parents[3]
INVOKE = [sys.executable, "-m", "invoke", "vm"]
PATIENCE = 240.0  # seconds until a guest says the next word, its disk made before it


def test_without_a_terminal_there_is_no_shell_and_nothing_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stages = Stages()
    monkeypatch.setattr(guest_command.os, "isatty", lambda number: False)
    with pytest.raises(ExperimentsError, match=r"needs a terminal.*--machine plain --line '"):
        guest_command.shell("plain", "openmpi", "auto", stages)
    assert stages.seconds == {}


@pytest.mark.container
@pytest.mark.timeout(300)
def test_a_line_says_here_what_it_says_there_and_ends_with_its_code(disk: Disk) -> None:
    command = [*INVOKE, "--machine", "gh200", "--line", "echo on $(nproc) CPUs; exit 3"]
    done = captured(command, cwd=ROOT)
    assert (done.returncode, done.stdout) == (3, "on 4 CPUs\n"), done.stderr


@pytest.mark.container
@pytest.mark.timeout(600)
@pytest.mark.rare
def test_the_shell_is_the_guests_and_so_is_ctrl_c(disk: Disk) -> None:
    process, terminal = _shell()
    shown = _said(terminal, b"plain:/hbmcomm#")
    line = b"echo made by $(cat /sys/class/dmi/id/sys_vendor); exec sleep 300"
    os.write(terminal, b"sh -c '%s'\r" % line)  # one job: between two, Ctrl-C would meet none
    shown += _said(terminal, b"made by hbmcomm")
    os.write(terminal, b"\x03")
    shown += _said(terminal, b"plain:/hbmcomm#")
    os.write(terminal, b"echo ended with $?\r")
    shown += _said(terminal, b"ended with 130")
    os.write(terminal, b"exit\r")
    shown += _said(terminal, None)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0, shown.decode()


@pytest.mark.container
@pytest.mark.timeout(600)
@pytest.mark.rare
def test_a_shell_that_is_ended_leaves_the_terminal_as_it_was(disk: Disk) -> None:
    process, terminal = _shell()
    before = termios.tcgetattr(terminal)
    _said(terminal, b"plain:/hbmcomm#")
    assert termios.tcgetattr(terminal) != before, "QEMU's own"
    os.kill(process, signal.SIGTERM)
    shown = _said(terminal, None)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 130, shown.decode()
    assert termios.tcgetattr(terminal) == before


def _shell() -> tuple[int, int]:
    """A shell in a guest on a terminal of its own: its process and that terminal."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(ROOT)
        os.execv(sys.executable, [*INVOKE, "--machine", "plain"])
    return process, terminal


def _said(terminal: int, wanted: bytes | None) -> bytes:
    """The output up to some words, or up to the end."""
    output, deadline = b"", time.monotonic() + PATIENCE
    while wanted is None or wanted not in output:
        assert time.monotonic() < deadline, output.decode()
        if select.select([terminal], [], [], 1.0)[0]:
            try:
                more = os.read(terminal, 4096)
            except OSError:  # how a terminal of this kernel says that its other end is closed
                more = b""
            if not more:
                assert wanted is None, output.decode()
                break
            output += more
    return output
