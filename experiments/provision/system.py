"""What of the system is missing before a measurement, and its installation with apt.

Does not start anything: a dockerd that is installed but silent is engine.py's concern.
"""

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

from experiments.environments.runtime import Runtime
from experiments.model.checkout import BUILD
from experiments.processes import executables
from experiments.provision import engine, user_namespaces
from experiments.provision.engine import EngineMissing

APT = ("apt-get", "-o", "DPkg::Lock::Timeout=300")  # seconds that it waits for another apt
LOG = BUILD / "apt.log"


@dataclass(frozen=True)
class Package:
    """A package by its Debian and Ubuntu name, what it is good for, and its program or library."""

    name: str
    purpose: str
    file: str

    def is_here(self) -> bool:
        """Whether the program is installed, or the library can be loaded."""
        return _loads(self.file) if ".so." in self.file else executables.find(self.file) is not None


ENGINE = Package("docker.io", "container engine", "dockerd")
IPTABLES = Package("iptables", "container engine's networks", "iptables")
MMDEBSTRAP = Package("mmdebstrap", "base image where no registry answers", "mmdebstrap")
MEMKIND = Package("libmemkind0", "memory kinds", "libmemkind.so.0")
PACKAGES = (ENGINE, IPTABLES, MMDEBSTRAP, MEMKIND)
"""For host and containers."""
QEMU = Package("qemu-system-x86", "emulated machines", "qemu-system-x86_64")
E2FSPROGS = Package("e2fsprogs", "disks of emulated machines", "mkfs.ext4")
EMULATION = (QEMU, E2FSPROGS)
"""Needed beside PACKAGES for emulated machines."""


def missing(wanted: tuple[Package, ...] = PACKAGES) -> tuple[Package, ...]:
    """The packages that this machine lacks.

    A docker command alone is not an engine: dockerd on the machine is, or anything that answers.
    """
    lacking = tuple(package for package in wanted if not package.is_here())
    of_engine = {ENGINE, IPTABLES}
    if of_engine & set(lacking) and engine.version() is not None:
        return tuple(package for package in lacking if package not in of_engine)
    return lacking


def hindrance(runtime: Runtime) -> EngineMissing | None:
    """What a runtime lacks here, as far as that is seen without a start; None where nothing."""
    if runtime.program and executables.find(runtime.program) is None:
        remedy = as_root(f"apt-get install -y {runtime.packages[0].removesuffix('*')}")
        elsewhere = f"; where the distribution has no package, {runtime.elsewhere} has"
        lack = f"{runtime.program} is not installed{elsewhere if runtime.elsewhere else ''}"
        return EngineMissing(lack, remedy)
    return user_namespaces.hindrance() if runtime.maps_ids and os.geteuid() else None


def ensure(
    say: Callable[[str], None] = print, yes: bool = False, wanted: tuple[Package, ...] = PACKAGES
) -> str:
    """Install what is missing, after saying so; "", or what lacks then, why, and what mends it.

    Args:
        say: takes one line of progress.
        yes: do not ask. Without a terminal there is no question either.
    """
    lacking = missing(wanted)
    if not lacking:
        return ""
    hindrance = obstacle(lacking, executables.find("apt-get") is not None, os.geteuid() == 0)
    asks = not yes and sys.stdin is not None and sys.stdin.isatty()
    return hindrance or install(lacking, say, _prompt if asks else None)


def obstacle(packages: tuple[Package, ...], has_apt: bool, is_root: bool) -> str:
    """The reason why packages cannot be installed from here, or "". Pure."""
    if not has_apt:
        purposes = ", ".join(package.purpose for package in packages)
        own = f"its own package manager, for: {purposes}"
        return _missing(packages, "this machine has no apt", own)
    if not is_root:
        return _missing(packages, "installing needs root", f"sudo {remedy(packages)}")
    return ""


def install(
    packages: tuple[Package, ...],
    say: Callable[[str], None],
    ask: Callable[[str], str] | None = None,
) -> str:
    """Install them with apt, as root; "" when that succeeds, else as ensure().

    Args:
        ask: shows a question and returns the answer; None: install without a question.
    """
    say(f"installing with apt: {_listed(packages)}")
    if ask and ask("Go ahead? [Y/n] ").strip().lower() not in ("", "y", "yes"):
        return _missing(packages, "their installation was declined", remedy(packages))
    offered, complaint = _apt(packages)
    if complaint:
        again = f"{remedy(offered)}, or read build/{LOG.name}"
        return _missing(offered, f"apt failed: {complaint}", again)
    rest = tuple(package for package in packages if package not in offered)
    if rest:
        elsewhere = "install it from its sources; everything that does not need it works"
        return _missing(rest, "this release of the distribution does not offer it", elsewhere)
    return ""


def remedy(packages: tuple[Package, ...]) -> str:
    """The one line that a person types."""
    names = " ".join(package.name for package in packages)
    return f"apt-get install -y --no-install-recommends {names}"


def as_root(command: str) -> str:
    """The command as this user has to type it."""
    return command if os.geteuid() == 0 else f"sudo {command}"


def install_command(packages: tuple[Package, ...]) -> list[str]:
    """The command that installs them without a question, waiting for a running apt to finish."""
    names = [package.name for package in packages]
    return [*APT, "install", "-y", "--no-install-recommends", *names]


def _apt(packages: tuple[Package, ...]) -> tuple[tuple[Package, ...], str]:
    """The packages that apt offers, all installed; or what it complained about.

    Lists that are empty or outdated fail at once: only then are they fetched again.
    """
    LOG.parent.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    with LOG.open("w", encoding="utf-8") as log:

        def run(command: list[str]) -> bool:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                check=False,
            )
            return done.returncode == 0

        if run(install_command(packages)):
            return packages, ""
        run([*APT, "update"])  # one mirror of several may fail and the rest still suffice
        offered = tuple(package for package in packages if run(["apt-cache", "show", package.name]))
        if not offered or run(install_command(offered)):
            return offered, ""
    return offered, _last_error()


def _prompt(question: str) -> str:
    try:
        return input(question)
    except EOFError:
        return "no"


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _last_error() -> str:
    lines = LOG.read_text(encoding="utf-8", errors="replace").splitlines()
    errors = [line.removeprefix("E: ") for line in lines if line.startswith("E: ")]
    return errors[-1] if errors else "without a word"


def _missing(packages: tuple[Package, ...], reason: str, remedy: str) -> str:
    return f"missing: {_listed(packages)}; {reason}; to mend it: {remedy}"


def _listed(packages: tuple[Package, ...]) -> str:
    return ", ".join(f"{package.name} ({package.purpose})" for package in packages)
