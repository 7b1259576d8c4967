"""The QEMU command of every machine, as text, and that QEMU itself takes it as it is meant.

golden/ holds the command of the machine plain with TCG, and what differs from it in those of the
other machines and in that of a shell with KVM.
"""

import difflib
import re
import subprocess
from pathlib import Path

import pytest

from experiments.emulation import description, qemu_command
from experiments.emulation.machine import MIB
from experiments.emulation.qemu_command import Disk
from experiments.model.environment import machine_names
from experiments.processes import executables

GOLDEN = Path(__file__).parent / "golden"
BUILD = Path("/build/guest")
DISK = Disk(BUILD / "vmlinuz", BUILD / "initramfs", BUILD / "disk", "id")


def golden(words: list[str]) -> list[str]:
    """One option a line; the distances from a node are in one."""
    lines: list[str] = []
    for line in re.split(" (?=-)", " ".join(words)):
        head, more, rest = line.partition(",dst=")
        if more and lines[-1].startswith(f"{head},"):
            lines[-1] += f" {rest}"
        else:
            lines.append(line)
    return lines


def differing(words: list[str]) -> list[str]:
    """The lines that are not in the command of plain, and those that are in that one alone."""
    return [line for line in difflib.ndiff(stored("plain"), golden(words)) if line[0] in "+-"]


def stored(name: str) -> list[str]:
    return (GOLDEN / f"{name}.txt").read_text().splitlines()


def test_the_plain_machine_is_this_command() -> None:
    words = qemu_command.arguments(description.load("plain"), DISK, BUILD, "tcg")
    assert golden(words) == stored("plain")


@pytest.mark.parametrize("name", [name for name in machine_names() if name != "plain"])
def test_another_machine_differs_in_this(name: str) -> None:
    words = qemu_command.arguments(description.load(name), DISK, BUILD, "tcg")
    assert differing(words) == stored(name)


def test_a_shell_has_the_terminal_instead_of_a_log() -> None:
    words = qemu_command.arguments(description.load("plain"), DISK, BUILD, "kvm", shell=True)
    assert differing(words) == stored("plain-shell-kvm")


def test_a_comma_in_a_path_parts_nothing() -> None:
    folder = Path("/a,b")
    disk = Disk(folder / "vmlinuz", folder / "initramfs", folder / "disk", "id")
    words = qemu_command.arguments(description.load("plain"), disk, folder, "tcg")
    values = " ".join(words[: words.index("-kernel")])
    assert values.count("=/a,,b/") == 3
    assert "/a,b/" not in values


@pytest.mark.skipif(executables.find(qemu_command.PROGRAM) is None, reason="QEMU is not installed")
@pytest.mark.parametrize("name", machine_names())
def test_qemu_has_the_nodes_that_the_description_has(name: str, tmp_path: Path) -> None:
    """Asked of a machine that is not started: no kernel is needed."""
    machine = description.load(name)
    disk = tmp_path / "disk"
    disk.write_bytes(bytes(MIB))
    words = qemu_command.arguments(machine, Disk(disk, disk, disk, "id"), tmp_path, "tcg")
    asked = [*words[: words.index("-kernel")], "-S", "-monitor", "stdio"]
    done = subprocess.run(
        asked, input="info numa\nquit\n", capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    cpus = re.findall(r"node (\d+) cpus:([ \d]*)", done.stdout)
    sizes = re.findall(r"node (\d+) size: (\d+) MB", done.stdout)
    assert {int(node): tuple(map(int, shown.split())) for node, shown in cpus} == {
        node.id: node.cpus for node in machine.nodes
    }
    assert {int(node): int(size) * MIB for node, size in sizes} == {
        node.id: node.memory_bytes + node.dax_mib * MIB for node in machine.nodes
    }
