"""One small emulated machine for small tests."""

from collections.abc import Iterator

import pytest

from experiments.emulation import description
from experiments.guests import boot
from experiments.guests.boot import Guest
from experiments.guests.disk import Disk


@pytest.fixture(scope="session")
def plain(disk: Disk) -> Iterator[Guest]:
    """A machine of one node; what a test leaves in it, the next one finds."""
    with boot.booted(description.load("plain"), disk) as guest:
        yield guest
