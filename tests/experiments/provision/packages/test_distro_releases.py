import pytest

from experiments.provision.packages import distro_releases


@pytest.mark.parametrize(
    ("python", "image"),
    [
        ("3.11", "debian:bookworm-slim"),
        ("3.12", "ubuntu:24.04"),
        ("3.13", "debian:trixie-slim"),
        ("3.14", "debian:bookworm-slim"),
    ],
)
def test_the_suite_has_the_hosts_python_where_any_has(python, image):
    assert distro_releases.with_python(python).image == image


def test_guests_are_made_of_debian_alone():
    makers = {suite.name for suite in distro_releases.SUITES if suite.makes_guests}
    assert makers == {"bookworm", "trixie"}
    assert distro_releases.GUESTS.makes_guests


def test_an_unknown_suite_is_none():
    assert distro_releases.named("potato") is None
    assert distro_releases.named("noble") == distro_releases.with_python("3.12")
