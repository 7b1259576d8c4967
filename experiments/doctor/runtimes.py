"""Container runtimes and QEMU, checked by the doctor."""

import os
from pathlib import Path

from experiments.doctor.checks import ROOT, Finding
from experiments.emulation import qemu
from experiments.environments import runtime
from experiments.environments.runtime import Runtime
from experiments.machine.facts import read
from experiments.model.environment import machine_names
from experiments.model.errors import Missing
from experiments.processes import executables
from experiments.processes.executables import captured
from experiments.provision import distro_releases, system
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
    emulator = f"{_brief(version)}, {HOW[qemu.best()]}"
    suite = distro_releases.with_python(distro_releases.host_python())
    if not suite.makes_guests:
        lack = f"their guests stand on Debian, and images for this Python on {suite.image}"
        remedy = f"./inv vm --machine plain --check --base {distro_releases.GUESTS.image}"
        return Finding(NAME, emulator, None, lack, remedy)
    return Finding(NAME, emulator, ok=True)


def _brief(version: str) -> str:
    """Such as "QEMU 7.2.22"."""
    number = version.partition(" version ")[2].split()[:1]
    return f"QEMU {number[0]}" if number else "a QEMU that does not tell its version"


def checks(root: Path = ROOT) -> list[Finding]:
    """A finding for each runtime with a program of its own."""
    return [_check(candidate, root) for candidate in runtime.every() if candidate.program]


def _check(asked: Runtime, root: Path) -> Finding:
    version, arm = _version(asked.program), f"no arm {asked.name}"
    if refusal := system.hindrance(asked):
        value = f"{version}, of no use here" if version else "not installed"
        return Finding(asked.label, value, None, f"{arm}: {refusal.lack}", refusal.remedy)
    if not version:
        return Finding(asked.label, "shows no version", None, f"{arm}: see {asked.program}")
    for name, (forbids, allows) in asked.settings.items():
        path = f"proc/sys/{name}"
        if os.geteuid() != 0 and read(root / path) == forbids:
            lack = f"{arm}: /{path} is {forbids}, so users make no namespaces"
            remedy = as_root(f"sysctl -w {name.replace('/', '.')}={allows}")
            return Finding(asked.label, f"{version}, not allowed", None, lack, remedy)
    return Finding(asked.label, version, ok=True)


def _version(program: str) -> str:
    """The program's own version text; "" if it is not installed or prints nothing."""
    path = executables.find(program)
    if path is None:
        return ""
    environment = {"USER": "hbmcomm", **os.environ}  # ch-run prints nothing without USER
    done = captured([path, "--version"], env=environment)
    return (done.stdout + done.stderr).strip().rpartition("\n")[2].rpartition(" version ")[2]
