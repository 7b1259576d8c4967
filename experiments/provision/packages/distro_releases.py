"""The releases of Debian and Ubuntu that an image can stand on, and the Python each one brings."""

import platform
from dataclasses import dataclass


@dataclass(frozen=True)
class Suite:
    """A release: its distribution, its image in the registry, its own minor version of Python."""

    name: str
    distribution: str
    image: str
    python: str

    @property
    def bootstrapped(self) -> str:
        """The tag under which it lies in the engine once bootstrapped here."""
        return f"hbmcomm-base:{self.name}"

    @property
    def makes_guests(self) -> bool:
        """Whether the guests of emulated machines can stand on it: their kernel is Debian's."""
        return self.distribution == "debian"


SUITES = (
    Suite("bookworm", "debian", "debian:bookworm-slim", "3.11"),
    Suite("noble", "ubuntu", "ubuntu:24.04", "3.12"),
    Suite("trixie", "debian", "debian:trixie-slim", "3.13"),
)
GUESTS = SUITES[0]
"""What guests stand on where the host's own suite does not make any."""


def host_python() -> str:
    """The minor version of this interpreter, such as 3.11."""
    return ".".join(platform.python_version_tuple()[:2])


def with_python(python: str) -> Suite:
    """The suite whose own Python this is, so that both arms match; bookworm where there is none."""
    return next((suite for suite in SUITES if suite.python == python), SUITES[0])


def named(name: str) -> Suite | None:
    """The suite of that name, or None."""
    return next((suite for suite in SUITES if suite.name == name), None)
