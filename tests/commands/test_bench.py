"""What a bench asks where flags do not, what it writes when it ends, and what it shows again."""

import json
from pathlib import Path
from typing import Any

import pytest
from invoke.context import Context
from invoke.exceptions import Exit

from commands import bench as command
from experiments.analysis.campaign import Campaign
from experiments.console import Stages
from experiments.driver import campaign
from experiments.driver.campaign_file import Request
from experiments.provision import passthrough
from experiments.results import store
from tests.benches import ask, medians, stored

FLAGS = dict.fromkeys(
    ("ranks", "sizes", "ops", "peers", "forms", "against", "cadence", "blocks", "seed"), ""
) | {"peers-tuned": False, "private": False}


@pytest.fixture
def bench() -> Campaign:
    made = stored(medians({("mpich", "direct"): 1.0, ("mpich", "mpi"): 2.0}), ask(2))
    made.header["machine"], made.header["experiment"] = "here", {}
    return made


def test_one_rank_per_core_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    for cores, ranks in {1: 2, 2: 2, 8: 8, 272: command.MOST_RANKS}.items():
        monkeypatch.setattr(passthrough, "cores", lambda cores=cores: cores)
        assert command.question(FLAGS).launches.ranks == (ranks,), cores
        assert command.question(FLAGS | {"ranks": "3"}).launches.ranks == (3,), cores


def test_a_stored_bench_is_shown_and_its_folder_left_as_it_is(
    bench: Campaign,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    command.show(bench, as_json=True)
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
    monkeypatch.setattr(command, "read", unreadable)
    with pytest.raises(KeyboardInterrupt):
        command.measure(ask(2), Request(tmp_path), Stages(), as_json=False)


@pytest.mark.parametrize("peers", ["", "impi"])
def test_an_mpi_that_is_named_must_be_there(
    peers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Request] = []
    monkeypatch.setattr(campaign, "run", lambda _, request, stages: asked.append(request))
    folders = {"out": str(tmp_path / "out"), "figures": str(tmp_path / "figures")}
    with pytest.raises(Exit, match="there is no results folder"):
        command.bench(Context(), peers=peers, **folders)
    assert [request.optional for request in asked] == [not peers]
