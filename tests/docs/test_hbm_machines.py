"""What a page says that doctor prints on a machine is what doctor prints for its description."""

import re
import tomllib
from pathlib import Path

import pytest

from experiments.doctor import checks, report
from tests.hbmcomm.memory.conftest import CONFIGURATION
from tests.hbmcomm.memory.machine_files import write_machine

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/hbm-machines.md"
MACHINES = ROOT / "tests/hbmcomm/memory/machines"
SHOWN = dict(
    re.findall(r"^<!-- doctor: (\w+) -->\n+```\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.M)
)
NOT_SHOWN = {"laptop"}
"""Machines without HBM and without anything that could be taken for it."""


def printed(machine: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Doctor's rows about memory for a described machine, in 96 columns."""
    for name in CONFIGURATION:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "96")
    write_machine(tomllib.loads((MACHINES / f"{machine}.toml").read_text()), root)
    table = report.to_table([checks.hbm(root), checks.numa_nodes(root)])
    return "".join(f"{line.rstrip()}\n" for line in table.splitlines())


def test_the_page_has_what_doctor_prints_of_every_machine_with_memory_to_choose_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for machine, text in SHOWN.items():
        assert text == printed(machine, tmp_path / machine, monkeypatch)
    assert set(SHOWN) | NOT_SHOWN == {path.stem for path in MACHINES.glob("*.toml")}
