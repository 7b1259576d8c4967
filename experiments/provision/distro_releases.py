"""The releases of Debian and Ubuntu that an image can be based on, and the mirrors that apt has."""

import platform
from dataclasses import dataclass
from pathlib import Path

from experiments.processes.executables import captured

ETC_APT = Path("/etc/apt")
FETCHABLE = ("http://", "https://", "file:/")  # what mmdebstrap can fetch from
LIST = (
    *("apt-get", "indextargets", "--no-release-info"),  # also of lists that were never fetched
    "--option=Dir::State::lists=/nonexistent",  # reading those that were takes half a second
    *("--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)", "Created-By: Packages"),
)


def mirror(suite: str, etc: Path = ETC_APT) -> str | None:
    """Where apt fetches the component main of a suite from; None also where there is no apt."""
    try:
        done = captured([*LIST, f"--option=Dir::Etc={etc}"])
    except OSError:
        return None
    for line in done.stdout.splitlines():
        release, component, uri = line.split(" ", 2)
        if (release, component) == (suite, "main") and uri.startswith(FETCHABLE):
            return uri.rstrip("/")
    return None


@dataclass(frozen=True)
class Suite:
    """A release: its distribution, its image in the registry, its own minor version of Python."""

    name: str
    distribution: str
    image: str
    python: str

    @property
    def bootstrapped(self) -> str:
        """The tag of the base image that is made here."""
        return f"hbmcomm-base:{self.name}"

    @property
    def has_memkind(self) -> bool:
        """Whether it has a package of memkind; Debian dropped it after bookworm."""
        return self.name != "trixie"

    @property
    def makes_guests(self) -> bool:
        """Whether guests of emulated machines can be based on it: their kernel is Debian's."""
        return self.distribution == "debian"


SUITES = (
    Suite("bookworm", "debian", "debian:bookworm-slim", "3.11"),
    Suite("noble", "ubuntu", "ubuntu:24.04", "3.12"),
    Suite("trixie", "debian", "debian:trixie-slim", "3.13"),
)
GUESTS = SUITES[0]
"""The base of guests where the host's own suite makes none."""


def host_python() -> str:
    """The minor version of this interpreter, such as 3.11."""
    return ".".join(platform.python_version_tuple()[:2])


def with_python(python: str) -> Suite:
    """The suite that has this Python, so that both arms match; bookworm if there is none."""
    return next((suite for suite in SUITES if suite.python == python), SUITES[0])


def named(name: str) -> Suite | None:
    """The suite of that name, or None."""
    return next((suite for suite in SUITES if suite.name == name), None)
