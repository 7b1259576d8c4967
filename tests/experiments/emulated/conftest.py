"""Guests of emulated machines: a disk for all of them, and one booted machine for small tests."""

from collections.abc import Iterator

import docker
import pytest

from experiments.emulated import boot, description
from experiments.emulated.boot import Guest
from experiments.provision import guest as guest_provision
from experiments.provision import packages
from experiments.provision.guest import Disk
from experiments.provision.image import Image


@pytest.fixture(scope="session")
def disk(engine: docker.DockerClient, image: Image) -> Disk:
    """What every guest boots from; skips, with the reason, where QEMU or root is missing."""
    lacking = packages.ensure(yes=True, wanted=packages.EMULATION)
    if lacking:
        pytest.skip(str(lacking))
    try:
        return guest_provision.ensure(engine, image)
    except guest_provision.GuestMissing as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def plain(disk: Disk) -> Iterator[Guest]:
    """A machine of one node; what a test leaves in it, the next one finds."""
    with boot.booted(description.load("plain"), disk) as guest:
        yield guest
