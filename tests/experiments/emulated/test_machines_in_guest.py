"""On every emulated machine all memory is found, and given, as its description says."""

from typing import Any

import pytest

from experiments.emulated import command, description, verdict
from experiments.emulated.verdict import Row

pytestmark = [pytest.mark.ranks, pytest.mark.container, pytest.mark.timeout(900)]


def check(there: Any) -> Any:
    """A whole check of where everything is."""
    return command.checked(there.guest)


@pytest.mark.parametrize(
    "machine",
    [pytest.param(name, marks=pytest.mark.visit(name, check)) for name in description.names()],
)
def test_everything_is_as_described(machine: str, brought: tuple[Row, ...]) -> None:
    assert all(row.ok for row in brought), "\n" + verdict.to_table(brought, 160)
