"""The QEMU command of every machine, as text, and that QEMU itself takes it as it is meant.

golden/ holds one file for each machine (with TCG), and one of a shell with KVM.
"""

import re
import subprocess
from pathlib import Path

import pytest

from experiments.emulation import description, qemu_command
from experiments.emulation.machine import MIB
from experiments.model.environment import machine_names
from experiments.processes import executables

GOLDEN = Path(__file__).parent / "golden"
BUILD = Path("/build/guest")
FILES = qemu_command.Files(
    BUILD / "vmlinuz", BUILD / "initramfs", BUILD / "disk", BUILD / "agent", BUILD / "console.log"
)


def golden(words: list[str]) -> str:
    """One option per line."""
    lines = [words[0]]
    for word in words[1:]:
        if word.startswith("-"):
            lines.append(f"    {word}")
        else:
            lines[-1] += f" {word}"
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", machine_names())
def test_a_machine_is_this_command(name: str) -> None:
    words = qemu_command.arguments(description.load(name), FILES, "tcg")
    assert golden(words) == (GOLDEN / f"{name}.txt").read_text()


def test_a_shell_has_the_terminal_instead_of_a_log() -> None:
    words = qemu_command.arguments(description.load("plain"), FILES, "kvm", shell=True)
    assert golden(words) == (GOLDEN / "plain-shell-kvm.txt").read_text()


@pytest.mark.parametrize("name", machine_names())
def test_no_machine_has_a_network_or_says_that_it_is_real(name: str) -> None:
    words = qemu_command.arguments(description.load(name), FILES, "tcg")
    assert words[words.index("-nic") + 1] == "none"
    assert not {"-net", "-netdev"} & set(words)
    assert (
        words[words.index("-smbios") + 1]
        == f"type=1,manufacturer=hbmcomm,product={name},version=tcg"
    )


def test_a_comma_in_a_path_parts_nothing() -> None:
    files = qemu_command.Files(*(Path("/a,b") / path.name for path in vars(FILES).values()))
    words = qemu_command.arguments(description.load("plain"), files, "tcg")
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
    files = qemu_command.Files(disk, disk, disk, tmp_path / "agent", tmp_path / "console.log")
    words = qemu_command.arguments(machine, files, "tcg")
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
        node.id: node.memory_bytes + node.dax_bytes for node in machine.nodes
    }
