"""On every emulated machine all memory is found, and given, as its description says."""

from typing import Any

import pytest

from experiments.emulation import guest_command
from experiments.emulation.differences import Fact
from experiments.model.environment import machine_names

pytestmark = [pytest.mark.ranks, pytest.mark.container, pytest.mark.rare, pytest.mark.timeout(1800)]


ENOUGH = 180  # seconds of one core, for booting a machine and checking it


def check(there: Any) -> Any:
    """A whole check of where everything is."""
    return guest_command.checked(there.guest)


@pytest.mark.parametrize(
    "machine",
    [pytest.param(name, marks=pytest.mark.visit(name, check)) for name in machine_names()],
)
def test_everything_is_as_described(machine: str, brought: tuple[Fact, ...]) -> None:
    assert not brought, "\n" + guest_command.to_table(brought, 160)


@pytest.mark.visit("knl-snc4-flat", check)
def test_a_boot_and_a_check_take_less_than_three_minutes(visit: Any) -> None:
    assert visit.seconds < ENOUGH
