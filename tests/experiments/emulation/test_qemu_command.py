"""The QEMU command of every machine, as text, and that QEMU itself takes it as it is meant.

golden/ holds the command of the machine plain with TCG, and what differs from it in those of the
other machines and in that of a shell with KVM.
"""

import difflib
import re
from pathlib import Path

import pytest

from experiments.emulation import description, qemu_command
from experiments.emulation.machine import MIB
from experiments.emulation.qemu_command import Disk
from experiments.model.environment import machine_names
from experiments.processes import executables
from experiments.processes.executables import captured

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


def test_commands_are_those_of_the_golden_files() -> None:
    """A shell has the terminal instead of a log."""

    def command(name: str, accelerator: str, shell: bool = False) -> list[str]:
        machine = description.load(name)
        return qemu_command.arguments(machine, DISK, BUILD, accelerator, shell=shell)

    lines = {name: differing(command(name, "tcg")) for name in machine_names()}
    lines["plain"] = golden(command("plain", "tcg"))
    lines["plain-shell-kvm"] = differing(command("plain", "kvm", shell=True))
    assert {path.stem for path in GOLDEN.iterdir()} == lines.keys()
    for name, expected in lines.items():
        assert expected == stored(name), name


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
    done = captured(asked, input="info numa\nquit\n", timeout=60)
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
