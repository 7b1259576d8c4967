"""What a bench writes and shows when it ends, and what of it a stored one does again."""

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.analysis.reading import Campaign
from experiments.bench import command
from experiments.bench.question import ask
from experiments.console.stages import Stages
from experiments.driver import campaign
from experiments.driver.campaign_file import Request
from experiments.results import store
from tests.experiments.bench.by_hand import medians, stored


@pytest.fixture
def found() -> Campaign:
    made = stored(medians({("mpich", "direct"): 1.0, ("mpich", "mpi"): 2.0}), ask(2))
    made.header["machine"], made.header["experiment"] = "here", {}
    return made


def test_a_stored_bench_is_shown_and_its_folder_left_as_it_is(
    found: Campaign,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(command, "read", lambda folder: found)
    command.show(tmp_path, as_json=True)
    assert json.loads(capsys.readouterr().out)["peers"][0]["ratio"] == 2
    assert not list(tmp_path.iterdir())


def test_an_error_of_the_measurement_is_not_replaced_by_one_of_its_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise KeyboardInterrupt

    def unreadable(folder: Path) -> Campaign:
        raise store.ResultsError("not readable")

    monkeypatch.setattr(campaign, "run", fail)
    monkeypatch.setattr(store, "finished", lambda folder: {"0000-mpich"})
    monkeypatch.setattr(command, "read", unreadable)
    with pytest.raises(KeyboardInterrupt):
        command.run(ask(2), tmp_path / "out", None, Stages(), as_json=False)


@pytest.mark.parametrize("peers", ["", "impi"])
def test_an_mpi_that_is_named_must_be_there(
    peers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Request] = []
    monkeypatch.setattr(campaign, "run", lambda _, request, stages: asked.append(request))
    command.run(ask(2, peers=peers), tmp_path / "out", None, Stages(), as_json=False, peers=peers)
    assert [request.optional for request in asked] == [not peers]
