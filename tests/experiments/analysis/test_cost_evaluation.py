"""Models of a campaign: which cells judge them, and how far from those they are."""

import math
from pathlib import Path

import pandas as pd
import pytest

from experiments.analysis import cost_evaluation, whatif
from experiments.analysis.cost_cells import CannotModel, of_bench, of_campaign
from experiments.analysis.cost_evaluation import Evaluation, evaluate, halves, relative_error
from experiments.analysis.reading import load
from hbmcomm.costmodel import CostModelError
from plots.tables import stored_bench
from tests.campaigns import write_campaign

CORES = Path("docs/data/cores.json.xz")


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    """The stored bench on 16 cores, of one MPI."""
    summary = dict(stored_bench.load(CORES))
    summary["launches"] = [launch for launch in summary["launches"] if launch["flavour"] == "impi"]
    return evaluate(of_bench(str(CORES), summary))


def test_half_of_the_cells_is_held_out_and_no_two_neighbours_are_in_it(
    evaluation: Evaluation,
) -> None:
    frame = evaluation.times[
        (evaluation.times["operation"] == "bcast") & (evaluation.times["transport"] == "direct")
    ]
    table = frame.pivot(index="ranks", columns="bytes", values="fitted")
    assert table.to_numpy().sum() == table.size / 2
    assert (table.to_numpy()[1:] != table.to_numpy()[:-1]).all()
    assert (table.to_numpy()[:, 1:] != table.to_numpy()[:, :-1]).all()


def test_on_the_stored_bench_the_median_error_of_unknown_cells_is_at_most_15_per_cent(
    evaluation: Evaluation,
) -> None:
    held = evaluation.held_out
    errors = {name: relative_error(held, name).median() for name in ("model", "roofline")}
    assert errors["model"] <= 0.15
    assert errors["roofline"] > 2 * errors["model"]


def test_predictions_do_not_depend_on_what_is_held_out(evaluation: Evaluation) -> None:
    summary = dict(stored_bench.load(CORES))
    rows = [
        launch
        for launch in summary["launches"]
        if launch["flavour"] == "impi" and launch["contender"] == "direct"
    ]
    measured = of_bench("again", {**summary, "launches": rows})
    spoiled = measured.times.copy()
    held = ~pd.concat([halves(part) for _, part in spoiled.groupby("operation")]).sort_index()
    spoiled.loc[held, "seconds"] *= 100
    again = evaluate(type(measured)(measured.source, spoiled, measured.machine))
    first = evaluate(measured)
    assert again.models == first.models
    pd.testing.assert_series_equal(again.times["learned"], first.times["learned"])


def test_the_machine_has_its_cores_its_cache_and_the_speeds_of_copies(
    evaluation: Evaluation,
) -> None:
    assert evaluation.machine.cores == 16
    assert evaluation.machine.cache_bytes == 300 * 2**20
    assert evaluation.machine.cache.speed(16) > 3 * evaluation.machine.cache.speed(2)
    assert evaluation.machine.speed("regular", 16) < evaluation.machine.cache.speed(16)


def test_without_scikit_learn_there_is_no_learned_model(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: str) -> None:
        raise ImportError

    monkeypatch.setattr(cost_evaluation.importlib, "import_module", missing)
    assert cost_evaluation.predicted(evaluation.times, evaluation.times["fitted"]).isna().all()


def test_a_campaign_of_few_sizes_is_refused_with_what_to_measure(campaign_folder: Path) -> None:
    with pytest.raises(CannotModel, match=r"\./inv run --experiment model"):
        evaluate(of_campaign(load(campaign_folder)))


def test_a_campaign_of_many_sizes_is_modelled(tmp_path: Path) -> None:
    write_campaign(tmp_path / "many", docker=False, slim=True, sizes="1KiB:4MiB:2", blocks=1)
    evaluation = evaluate(of_campaign(load(tmp_path / "many")))
    held = evaluation.held_out
    assert relative_error(held, "model").median() < 0.1


def test_hbm_of_another_machine_is_as_fast_as_its_curve(evaluation: Evaluation) -> None:
    frame = whatif.speedups(evaluation, "knl")
    bcast = frame[frame["operation"] == "bcast"].set_index(["placement", "ranks"])["ratio"]
    spread, packed = whatif.PLACEMENTS
    assert bcast[spread, 2] == pytest.approx(1.1, abs=0.1)
    assert bcast[spread, 16] == pytest.approx(2.1, abs=0.1)
    assert bcast[packed, 16] == pytest.approx(4.8, abs=0.2)


def test_scaling_has_the_ends_of_its_band_around_each_time(evaluation: Evaluation) -> None:
    frame = whatif.scaling(evaluation, "knl", ("10gbit", "400gbit"), 10_000)
    assert frame["nodes"].max() == 10_000 and set(frame["network"]) == {"10gbit", "400gbit"}
    low, high = whatif.band(evaluation)
    assert low < 1 < high
    pd.testing.assert_series_equal(frame["low"], low * frame["seconds"], check_names=False)
    assert not math.isnan(frame["seconds"].sum())
    with pytest.raises(CostModelError, match="unknown machine 'cray'"):
        whatif.scaling(evaluation, "cray", ("10gbit",), 10)
