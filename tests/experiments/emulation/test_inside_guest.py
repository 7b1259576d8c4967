"""A launch's command in a real guest: started, watched and ended as the driver does it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.emulation import inside_guest
from experiments.emulation.boot import Guest
from experiments.environments import vm
from experiments.environments.profiles import CONTAINER_USER
from experiments.environments.vm import LAUNCHES
from experiments.processes.executables import captured
from tests.awaiting import wait_for

pytestmark = [pytest.mark.container, pytest.mark.timeout(600)]


def words(guest: Guest, folder: Path, *command: str, options: tuple[str, ...] = ()) -> list[str]:
    return list(vm.inside(guest.socket, folder, command, *options).argv)


def ended(command: list[str]) -> "subprocess.CompletedProcess[str]":
    return captured(command, timeout=120)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "0000-vm-plain"
    place.mkdir()
    (place / "launch.json").write_text('{"asked": true}')
    return place


def test_the_folder_goes_in_and_what_was_written_comes_back(plain: Guest, folder: Path) -> None:
    line = f"cd {LAUNCHES / folder.name} && cat launch.json >result.json && printf '1 2' >progress"
    done = ended(words(plain, folder, "sh", "-c", f"{line}; echo said; exit 3"))
    assert (done.returncode, done.stdout) == (3, "said\n"), done.stderr
    assert (folder / "result.json").read_text() == '{"asked": true}'
    assert (folder / "progress").read_text() == "1 2"
    with plain.agent() as connection:
        assert connection.run("/bin/ls", str(LAUNCHES)).output == ""


def test_nothing_of_this_machine_reaches_the_command(
    plain: Guest, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "of the host")
    done = ended(words(plain, folder, "sh", "-c", "id -u; pwd; env | sort"))
    lines = done.stdout.splitlines()
    assert lines[:2] == [str(CONTAINER_USER), "/hbmcomm"]
    shells = {"PWD", "OLDPWD", "SHLVL", "_"}
    shown = {line for line in lines[2:] if line.partition("=")[0] not in shells}
    assert shown == set(inside_guest.VARIABLES)


def test_root_is_asked_for_by_name(plain: Guest, folder: Path) -> None:
    done = ended(words(plain, folder, "id", "-u", options=("--root",)))
    assert done.stdout == "0\n"


def test_the_line_after_runs_however_the_command_ended(plain: Guest, folder: Path) -> None:
    options = ("--after", "touch /tmp/after")
    assert ended(words(plain, folder, "false", options=options)).returncode == 1
    with plain.agent() as connection:
        assert connection.run("/bin/rm", "/tmp/after").code == 0


def test_a_long_log_arrives_whole_and_in_order(plain: Guest, folder: Path) -> None:
    done = ended(words(plain, folder, "sh", "-c", "seq 20000; sleep 1; seq 5"))
    assert done.stdout.split() == [str(n) for n in (*range(1, 20001), *range(1, 6))]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_is_ended_here_ends_there(plain: Guest, folder: Path, number: signal.Signals) -> None:
    line = f"touch {LAUNCHES / folder.name}/progress; exec sleep 987"
    command = words(plain, folder, "sh", "-c", line, options=("--after", "touch /tmp/after"))
    process = subprocess.Popen(command)
    wait_for((folder / "progress").exists, "start of the command", 60)
    process.send_signal(number)
    assert process.wait(30) == 128 + signal.SIGTERM
    with plain.agent() as connection:
        running = connection.run("/bin/sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '").output
        assert "sleep 987" not in running
        assert connection.run("/bin/rm", "/tmp/after").code == 0


def test_a_guest_that_is_gone_is_reported_in_a_line(folder: Path, tmp_path: Path) -> None:
    program = "import experiments.emulation.inside_guest as i; i.PATIENCE = 0.3; i.main()"
    options = ("--agent", str(tmp_path / "none"), "--folder", str(folder))
    done = ended([sys.executable, "-c", program, *options, "--", "true"])
    assert done.returncode == os.EX_UNAVAILABLE
    assert done.stderr.count("\n") == 1 and "nobody listens" in done.stderr
