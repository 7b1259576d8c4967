"""What the doctor says of emulated machines, where QEMU is and where it is not."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.doctor import runtimes
from experiments.emulation import qemu as accelerator
from experiments.provision import distro_releases

Install = Callable[[str, str], Path]


def test_what_lacks_is_no_fault_and_has_one_command(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    install("mkfs.ext4", "")
    finding = runtimes.emulated_machines()
    assert (finding.value, finding.ok) == ("missing: qemu-system-x86", None)
    assert "knl-snc4-flat" in str(finding.lack)
    assert finding.remedy == "sudo apt-get install -y --no-install-recommends qemu-system-x86"


@pytest.mark.parametrize(
    ("says", "best", "shown"),
    [
        ("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)", "kvm", "QEMU 7.2.22, KVM"),
        ("QEMU emulator version 10.0.2", "tcg", "QEMU 10.0.2, TCG: slower"),
        ("something else", "kvm", "a QEMU that does not tell its version, KVM"),
    ],
)
def test_qemu_is_reported_with_its_version_and_with_what_helps_it(
    install: Install, monkeypatch: pytest.MonkeyPatch, says: str, best: str, shown: str
) -> None:
    monkeypatch.setattr(accelerator, "best", lambda: best)
    monkeypatch.setattr(distro_releases, "host_python", lambda: "3.11")
    install("mkfs.ext4", "")
    install("qemu-system-x86_64", f"echo '{says}'")
    finding = runtimes.emulated_machines()
    assert finding.value.startswith(shown)
    assert finding.ok


def test_where_images_stand_on_ubuntu_the_base_for_guests_is_named(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accelerator, "best", lambda: "tcg")
    monkeypatch.setattr(distro_releases, "host_python", lambda: "3.12")
    install("mkfs.ext4", "")
    install("qemu-system-x86_64", "echo QEMU emulator version 8.2.2")
    finding = runtimes.emulated_machines()
    assert finding.value.startswith("QEMU 8.2.2, TCG")
    assert finding.ok is None
    assert "ubuntu:24.04" in str(finding.lack)
    assert finding.remedy == "./inv vm --machine plain --check --base debian:bookworm-slim"


def test_a_qemu_that_does_not_start_is_reported_with_its_last_words(install: Install) -> None:
    install("mkfs.ext4", "")
    qemu = install("qemu-system-x86_64", "echo libslirp.so.0: not found >&2; exit 127")
    finding = runtimes.emulated_machines()
    assert (finding.value, finding.ok) == ("QEMU does not start", None)
    assert str(finding.lack).startswith(
        f"{qemu} does not start: libslirp.so.0: not found; sudo apt"
    )
    qemu.write_text("no program")
    assert "does not start: [Errno 8]" in str(runtimes.emulated_machines().lack)


USERNS = "proc/sys/kernel/apparmor_restrict_unprivileged_userns"


@pytest.mark.usefixtures("install")
def test_none_of_them_is_missed_as_a_fault_and_each_has_its_command() -> None:
    for finding in runtimes.checks():
        assert (finding.value, finding.ok) == ("not installed", None)
        assert finding.lack
        assert "apt-get install -y" in str(finding.remedy)


def test_versions_are_told_wherever_a_program_says_them(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("USER", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    install("unshare", "echo unshare from util-linux 2.38.1")
    install("podman", "echo podman version 4.3.1")
    install("ch-run", '[ -n "$USER" ] && echo 0.31 >&2')
    install("apptainer", "echo apptainer version 1.4.0")
    findings = runtimes.checks()
    versions = ["unshare from util-linux 2.38.1", "4.3.1", "0.31", "1.4.0"]
    assert [finding.value for finding in findings] == versions
    assert {finding.ok for finding in findings} == {True}


@pytest.mark.parametrize(("uid", "ok"), [(0, True), (1000, None)])
def test_users_that_may_not_make_namespaces_are_told_the_setting(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uid: int, ok: bool | None
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    install("ch-run", "echo 0.31 >&2")
    (tmp_path / USERNS).parent.mkdir(parents=True)
    (tmp_path / USERNS).write_text("1\n")
    (finding,) = [check for check in runtimes.checks(tmp_path) if check.name == "Charliecloud"]
    assert finding.ok is ok
    if not ok:
        assert finding.remedy == ("sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0")
