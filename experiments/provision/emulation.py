"""Whether emulated machines can be had here, and whether the processor helps.

Answers as checks.py does; changes nothing. No measurement on real hardware needs them, so their
absence is no fault.
"""

import subprocess

from experiments.emulated import description, qemu
from experiments.provision import accelerator, packages, programs
from experiments.provision.checks import Finding, as_root

HOW = {
    "kvm": "KVM",
    "tcg": "TCG: slower, alike in all else (KVM does not work here)",
}


def emulated_machines() -> Finding:
    lacking = packages.missing(packages.EMULATION)
    if lacking:
        return Finding(
            "emulated machines",
            f"missing: {', '.join(package.name for package in lacking)}",
            None,
            f"none of {', '.join(description.names())} can be shown",
            as_root(packages.remedy(lacking)),
        )
    return Finding("emulated machines", f"{_version()}, {HOW[accelerator.best()]}", ok=True)


def _version() -> str:
    """QEMU's own word, such as "QEMU 7.2.22"."""
    command = [programs.find(qemu.PROGRAM) or qemu.PROGRAM, "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    number = said.partition(" version ")[2].split()[:1]
    return f"QEMU {number[0]}" if number else "a QEMU that does not tell its version"
