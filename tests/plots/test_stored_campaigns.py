"""Campaigns of other machines and of older versions: drawn here, whatever this machine knows."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.analysis import export
from experiments.analysis.reading import load
from experiments.results import store, unarchive
from plots.html.report import report
from tests.campaigns import write_campaign

STORED = Path(__file__).parents[1] / "experiments" / "stored" / "format-2.tar.xz"
"""Measured in 2026 by the version that wrote format 2: 2 blocks of host, userland and Docker."""
YOUNGER = {
    "header": ("missing", "variables", "containers", "engines", "emulated", "machine"),
    "result": ("company", "command"),
    "launch": ("program",),
    "cells": ("turn", "barrier", "begins", "began_ns"),
    "environment": ("machine", "topology", "measurement"),
}
"""What was added to format 2 after its first campaigns."""


@pytest.fixture
def stored() -> Iterator[Path]:
    with unarchive.opened(STORED) as folder:
        yield folder


def drawn(folder: Path, out: Path) -> str:
    """The report, with every figure and table in it, after every export has had the folder."""
    for form, raw in (("osu", False), ("csv", False), ("csv", True), ("openmetrics", False)):
        export.export(load(folder), form, out / f"{form}-{raw}", raw)
    return report(folder, out).read_text(encoding="utf-8")


@pytest.mark.rare  # pages are tested with the archives of docs/data, of all formats
def test_the_first_campaigns_of_format_2_are_drawn(stored: Path, tmp_path: Path) -> None:
    def first(values: dict[str, Any]) -> None:
        for part, keys in YOUNGER.items():
            within = values if part == "result" else values.get(part, {})
            for fields in within if isinstance(within, list) else [within]:
                for key in keys:
                    fields.pop(key, None)

    for path in sorted((stored / "launches").glob("*.json")):
        values = json.loads(path.read_text())
        first(values)
        store.write_json(path, values)
    header = json.loads((stored / "campaign.json").read_text())
    left = {key: value for key, value in header.items() if key not in YOUNGER["header"]}
    store.write_json(stored / "campaign.json", left)
    assert "took no turns with the other arms" in drawn(stored, tmp_path)


def rename(folder: Path, old: str, new: str) -> None:
    """Another name everywhere: in every JSON file and in the names of files."""
    for path in sorted(folder.rglob("*.*")):
        if path.suffix == ".json":
            path.write_text(path.read_text().replace(old, new))
        path.rename(path.with_name(path.name.replace(old, new)))


@pytest.mark.rare
def test_a_campaign_of_an_emulated_machine_of_ones_own_is_drawn_anywhere(tmp_path: Path) -> None:
    folder = write_campaign(
        tmp_path / "own", machine="knl-snc4-flat", profiles="tuned", sizes="1KiB"
    )
    rename(folder, "knl-snc4-flat", "my-machine")
    assert "Docker in emulated my-machine" in drawn(folder, tmp_path / "out")


def test_names_that_are_unknown_here_are_drawn_as_they_are(stored: Path, tmp_path: Path) -> None:
    names = {"openmpi": "mvapich", '"hbw"': '"hbm4"', "docker-tuned-one": "lxc-tuned-one"}
    for known, unknown in names.items():
        rename(stored, known, unknown)
    page = drawn(stored, tmp_path)
    assert all(name in page for name in ("mvapich", "hbm4", "lxc, tuned, one container"))
