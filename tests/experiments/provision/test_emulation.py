"""What the doctor says of emulated machines, where QEMU is and where it is not."""

import os
from pathlib import Path

import pytest

from experiments.provision import accelerator, emulation, programs


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder whose programs are the only ones installed."""

    def find(name: str) -> str | None:
        return str(tmp_path / name) if (tmp_path / name).exists() else None

    monkeypatch.setattr(programs, "find", find)
    return tmp_path


def install(folder: Path, name: str, says: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\necho '{says}'\n")
    (folder / name).chmod(0o755)


def test_what_lacks_is_no_fault_and_has_one_command(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    install(installed, "mkfs.ext4", "")
    finding = emulation.emulated_machines()
    assert (finding.value, finding.ok) == ("missing: qemu-system-x86", None)
    assert "knl-snc4-flat" in str(finding.lack)
    assert finding.remedy == "sudo apt-get install -y --no-install-recommends qemu-system-x86"


@pytest.mark.parametrize(
    ("says", "found", "told"),
    [
        ("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)", "kvm", "QEMU 7.2.22, KVM"),
        ("QEMU emulator version 10.0.2", "tcg", "QEMU 10.0.2, TCG: slower"),
        ("something else", "kvm", "a QEMU that does not tell its version, KVM"),
    ],
)
def test_qemu_is_told_with_its_version_and_with_what_helps_it(
    installed: Path, monkeypatch: pytest.MonkeyPatch, says: str, found: str, told: str
) -> None:
    monkeypatch.setattr(accelerator, "best", lambda: found)
    install(installed, "mkfs.ext4", "")
    install(installed, "qemu-system-x86_64", says)
    finding = emulation.emulated_machines()
    assert finding.value.startswith(told)
    assert finding.ok
