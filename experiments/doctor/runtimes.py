"""Container runtimes and QEMU, checked by the doctor."""

import os
from pathlib import Path

from experiments.doctor.checks import ROOT, Finding
from experiments.emulation import qemu
from experiments.machine.facts import read
from experiments.model.environment import machine_names
from experiments.model.errors import Missing
from experiments.processes import executables
from experiments.processes.executables import captured
from experiments.provision import distro_releases, system
from experiments.provision import podman as podman_service
from experiments.provision.system import as_root

NAME = "emulated machines"
HOW = {
    "kvm": "KVM",
    "tcg": "TCG: slower, alike in all else (KVM does not work here)",
}


def emulated_machines() -> Finding:
    if lacking := system.missing(system.EMULATION):
        names = ", ".join(package.name for package in lacking)
        lack = f"none of {', '.join(machine_names())} can be shown"
        remedy = system.as_root(system.remedy(lacking))
        return Finding(NAME, f"missing: {names}", None, lack, remedy)
    try:
        version = qemu.version()
    except Missing as broken:
        return Finding(NAME, "QEMU does not start", None, str(broken))
    found = f"{_brief(version)}, {HOW[qemu.best()]}"
    suite = distro_releases.with_python(distro_releases.host_python())
    if not suite.makes_guests:
        lack = f"their guests stand on Debian, and images for this Python on {suite.image}"
        remedy = f"./inv vm --machine plain --check --base {distro_releases.GUESTS.image}"
        return Finding(NAME, found, None, lack, remedy)
    return Finding(NAME, found, ok=True)


def _brief(version: str) -> str:
    """Such as "QEMU 7.2.22"."""
    number = version.partition(" version ")[2].split()[:1]
    return f"QEMU {number[0]}" if number else "a QEMU that does not tell its version"


USER_NAMESPACES = {
    "user/max_user_namespaces": ("0", "10000"),
    "kernel/unprivileged_userns_clone": ("0", "1"),
    "kernel/apparmor_restrict_unprivileged_userns": ("1", "0"),
}
"""Settings: a value that keeps ordinary users from making namespaces, and one that does not."""


def podman() -> Finding:
    version = _version("podman")
    if refusal := podman_service.hindrance():
        value = f"{version}, of no use here" if version else "not installed"
        return Finding("Podman", value, None, f"no arm podman: {refusal.lack}", refusal.remedy)
    return Finding("Podman", f"{version}, its service is started when it is needed", ok=True)


def charliecloud(root: Path = ROOT) -> Finding:
    version = _version("ch-run")
    if not version:
        remedy = as_root("apt-get install -y charliecloud")
        return Finding("Charliecloud", "not installed", None, "no arm charliecloud", remedy)
    if os.geteuid() != 0:
        for name, (forbids, allows) in USER_NAMESPACES.items():
            path = f"proc/sys/{name}"
            if read(root / path) == forbids:
                lack = f"no arm charliecloud: /{path} is {forbids}, so users make no namespaces"
                remedy = as_root(f"sysctl -w {name.replace('/', '.')}={allows}")
                return Finding("Charliecloud", f"{version}, not allowed", None, lack, remedy)
    return Finding("Charliecloud", version, ok=True)


def apptainer() -> Finding:
    version = _version("apptainer")
    if version:
        return Finding("Apptainer", version, ok=True)
    remedy = as_root("apt-get install -y apptainer")
    lack = "no arm apptainer; where the distribution has no package, apptainer.org has"
    return Finding("Apptainer", "not installed", None, lack, remedy)


CHECKS = (podman, charliecloud, apptainer)


def _version(program: str) -> str:
    """The program's own version text; "" if it is not installed or prints nothing."""
    path = executables.find(program)
    if path is None:
        return ""
    environment = {"USER": "hbmcomm", **os.environ}  # ch-run prints nothing without USER
    done = captured([path, "--version"], env=environment)
    return (done.stdout + done.stderr).strip().rpartition("\n")[2].rpartition(" version ")[2]
