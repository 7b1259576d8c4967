"""The text of a comparison says first what differs, then the results, and how to read them."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from experiments.analysis import reading
from experiments.analysis.comparison import compare
from experiments.console import Stages
from plots.tables import comparison


def text(first: Path, second: Path) -> str:
    console = Console(file=io.StringIO(), width=comparison.WIDTH)
    console.print(comparison.render(compare(reading.load(first), reading.load(second))))
    return console.file.getvalue()


def test_differences_come_before_results(campaign_folder: Path, dockerless_folder: Path) -> None:
    output = text(campaign_folder, dockerless_folder)
    assert output.index("What differs") < output.index("Results") < output.index("Unpaired:")
    assert "experiment.launches.environments" in output
    assert "Left out: " in output
    assert "only in the first campaign" in output


def test_rows_that_claim_nothing_are_counted_above_them(campaign_folder: Path) -> None:
    output = text(campaign_folder, campaign_folder)
    count = output.count("too few blocks")
    assert f"{count} of {count} rows have fewer than 6 launches on a side" in output
    assert output.index("rows have fewer") < output.index("Results")


def test_a_campaign_against_itself_differs_in_nothing(campaign_folder: Path) -> None:
    output = text(campaign_folder, campaign_folder)
    assert "Nothing that was recorded differs" in output
    assert "host again" not in output


def test_json_holds_the_same_with_null_for_what_is_no_number(
    campaign_folder: Path, dockerless_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    comparison.show(campaign_folder, dockerless_folder, False, True, Stages(Console(quiet=True)))
    printed = json.loads(capsys.readouterr().out)
    assert printed["campaigns"] == [str(campaign_folder), str(dockerless_folder)]
    assert {"what", "first", "second"} == set(printed["differences"][0])
    cell = printed["cells"][0]
    assert cell["low"] is None  # two blocks have no interval
    assert cell["verdict"] == "too few blocks"
    assert cell["ratio"] > 0
    assert cell["bytes"] in (1024, 65536, 4194304)


def test_an_emulated_machine_is_reported_before_anything_else(
    emulated_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warning = "Emulated machine knl-snc4-flat (tcg): where ranks and pages are is real"
    assert text(emulated_folder, emulated_folder).startswith(warning)
    comparison.show(emulated_folder, emulated_folder, False, True, Stages(Console(quiet=True)))
    assert json.loads(capsys.readouterr().out)["warning"].startswith(warning)
