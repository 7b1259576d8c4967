"""Checks whether emulated machines can run here, and whether the processor accelerates them.

Answers as checks.py does; changes nothing. No measurement on real hardware needs them, so their
absence is no fault.
"""

from experiments.model.environment import machine_names
from experiments.model.errors import Missing
from experiments.provision.doctor.checks import Finding
from experiments.provision.packages import distro_releases, system
from experiments.provision.qemu import accelerator, qemu_binary

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
        version = qemu_binary.version()
    except Missing as broken:
        return Finding(NAME, "QEMU does not start", None, str(broken))
    found = f"{_brief(version)}, {HOW[accelerator.best()]}"
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
