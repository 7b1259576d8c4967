"""Whether emulated machines can be had here, and whether the processor helps.

Answers as checks.py does; changes nothing. No measurement on real hardware needs them, so their
absence is no fault.
"""

from experiments.emulated import description
from experiments.provision import accelerator, emulator, packages, suites
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
    try:
        version = emulator.version()
    except emulator.QemuMissing as broken:
        return Finding("emulated machines", "QEMU does not start", None, str(broken))
    found = f"{_brief(version)}, {HOW[accelerator.best()]}"
    suite = suites.with_python(suites.host_python())
    if not suite.makes_guests:
        return Finding(
            "emulated machines",
            found,
            None,
            f"their guests stand on Debian, and images for this Python on {suite.image}",
            f"./inv vm --machine plain --check --base {suites.GUESTS.image}",
        )
    return Finding("emulated machines", found, ok=True)


def _brief(version: str) -> str:
    """Such as "QEMU 7.2.22"."""
    number = version.partition(" version ")[2].split()[:1]
    return f"QEMU {number[0]}" if number else "a QEMU that does not tell its version"
