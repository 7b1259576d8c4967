"""Machines that come up, that do not, and that end with the process that started them."""

import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.emulation import boot, description, qemu
from experiments.emulation.boot import Guest
from experiments.emulation.qemu_command import Disk
from experiments.model.errors import ExperimentsError
from tests.awaiting import alive, wait_for

needs_guest = pytest.mark.container
pytestmark = pytest.mark.timeout(600)

STARTER = """
import sys, time
from pathlib import Path
from experiments.emulation import description
from experiments.emulation.qemu_command import Disk
from experiments.emulation import boot
disk = Disk(*map(Path, sys.argv[1:4]), "id")
with boot.booted(description.load("plain"), disk, lambda line: None) as guest:
    print(guest.process.pid, flush=True)
    time.sleep(300)
"""


@needs_guest
def test_the_guest_knows_where_it_runs(plain: Guest) -> None:
    with plain.agent() as connection:
        shown = connection.run("/bin/sh", "-c", "cd /sys/class/dmi/id; cat sys_vendor product_*")
    assert shown.output.split()[:2] == ["hbmcomm", "plain"]
    assert plain.accelerator in shown.output


@needs_guest
def test_a_guest_has_no_network(plain: Guest) -> None:
    with plain.agent() as connection:
        assert connection.run("/bin/ls", "/sys/class/net").output.split() == ["lo"]


@pytest.mark.rare
@needs_guest
def test_its_engine_holds_the_harness_image(plain: Guest) -> None:
    plain.start_engine()
    with plain.agent() as connection:
        line = "docker images --format '{{.Repository}}:{{.Tag}}'; docker network ls -q | wc -l"
        assert connection.run("/bin/sh", "-c", line).output.split() == ["hbmcomm:openmpi", "2"]


@needs_guest
def test_a_disk_that_is_none_is_reported_with_the_last_words(disk: Disk, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_bytes(b"\0" * 2**20)
    broken = dataclasses.replace(disk, image=empty)
    with (
        pytest.raises(ExperimentsError, match=r"(?s)plain ended while it booted.*last words"),
        boot.booted(description.load("plain"), broken),
    ):
        pass


def test_a_machine_larger_than_this_one_is_reported_before_anything_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = description.load("plain")
    monkeypatch.setattr(qemu, "version", lambda: "QEMU")
    monkeypatch.setattr(boot, "MEMORY", plain.memory_bytes)
    boot.refuse(plain, "debian:bookworm-slim")
    monkeypatch.setattr(boot, "MEMORY", plain.memory_bytes - 2**20)
    refusal = r"plain has (\d+) MiB .* this machine \d+ MiB; make its"
    with pytest.raises(ExperimentsError, match=refusal):
        boot.refuse(plain, "debian:bookworm-slim")


def test_where_a_guest_writes_there_must_be_room(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plain = description.load("plain")
    monkeypatch.setattr(qemu, "version", lambda: "QEMU")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    boot.refuse(plain, "debian:bookworm-slim")
    monkeypatch.setattr(boot, "ROOM", 2**60)
    refusal = f"kept in {tmp_path}, which has .*; make room, or set"
    with pytest.raises(ExperimentsError, match=refusal):
        boot.refuse(plain, "debian:bookworm-slim")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "gone"))
    with pytest.raises(ExperimentsError, match="gone: No such file or directory; set TMPDIR"):
        boot.refuse(plain, "debian:bookworm-slim")


@needs_guest
def test_a_machine_that_qemu_refuses_is_reported_in_its_words_alone(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boot.qemu_command, "arguments", lambda *asked: ["qemu", "-no-such-option"])
    with (
        pytest.raises(ExperimentsError, match=r"while it booted: .*-no-such-option.*option$"),
        boot.booted(description.load("plain"), disk),
    ):
        pass


@needs_guest
def test_the_machine_ends_with_its_starter_however_that_ends(disk: Disk) -> None:
    parts = [str(path) for path in (disk.kernel, disk.initramfs, disk.image)]
    starter = subprocess.Popen([sys.executable, "-c", STARTER, *parts], stdout=subprocess.PIPE)
    assert starter.stdout
    pid = int(starter.stdout.readline())
    assert alive(pid)
    os.kill(starter.pid, signal.SIGKILL)
    starter.wait()
    wait_for(lambda: not alive(pid), "end of the machine", 10)
