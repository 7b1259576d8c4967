"""Two campaigns side by side: differences first; those that do not compare are refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from experiments.analysis import comparison, metadata_diff, ratios
from experiments.analysis.campaign import Campaign
from experiments.analysis.comparison import Comparison, Difference, compare
from experiments.analysis.reading import COLUMNS
from experiments.analysis.statistics import Verdict
from experiments.catalogue import spec
from experiments.results.store import ResultsError
from tests.experiments.analysis import launch_medians
from tests.launched import made, numa

OPENMPI, MPICH = "Open MPI v5.0.11", "MPICH 5.0.2"
CELL = launch_medians.CELL | {"group": 1}


@pytest.fixture(autouse=True)
def one_cell_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """A noise floor from the single cell that these campaigns have."""
    monkeypatch.setattr(ratios, "LEAST_CELLS", 1)


def cells(seconds: float, blocks: int = 10, spread: float = 0.002, **levels: Any) -> pd.DataFrame:
    """Launch medians of one cell, of the host and its twin."""
    rng = np.random.default_rng(1)
    rows = [
        CELL
        | {"arm": arm, "block": block}
        | levels
        | {"median_s": seconds * float(np.exp(rng.normal(scale=spread)))}
        for block in range(blocks)
        for arm in ("host", "host-again")
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def campaign(name: str, medians: pd.DataFrame, **text: Any) -> Campaign:
    """A campaign with these medians; `environment` and `header` say more about it."""
    asked = spec.load("quick")
    mpis = dict(zip(medians["mpi"], medians["arm"], strict=True))
    versions = {"openmpi": OPENMPI, "mpich": MPICH}
    launches = [
        made(
            {
                "launch": {"arm": arm, "mpi": mpi},
                "environment": {
                    "versions": {"mpi": versions[mpi], "python": "3.11.7"},
                    "machine": {"kernel": "6.1", "load": f"0.{number}1 0.1 0.1 1/99 4711"},
                    "datapath": {"cma": "works", "namespaces": {"pid": f"pid:[{number}]"}},
                }
                | text.get("environment", {}),
            }
        )
        for number, (mpi, arm) in enumerate(mpis.items())
    ]
    header = {
        "name": name,
        "id": name,
        "experiment": asked.to_dict(),
        "git": "abc",
        "command": ["x", "run"],
        **text.get("header", {}),
    }
    return Campaign(
        Path(name), name, asked, header, launches, medians, medians[:0], medians[:0], []
    )


def compared(first: pd.DataFrame, second: pd.DataFrame, **text: Any) -> Comparison:
    """Campaigns with these medians; `text` says more about the second one."""
    return compare(campaign("a", first), campaign("a", second, **text))


def shown(pair: Comparison) -> list[tuple[str, str, str]]:
    return [
        (difference.what, difference.first, difference.second) for difference in pair.differences
    ]


def test_the_second_over_the_first_and_the_twin_is_only_the_floor() -> None:
    for first, second, ratio, verdict in (
        (cells(1e-5), cells(1e-5), 1.0, Verdict.EQUIVALENT),
        (cells(1e-5), cells(1.2e-5), 1.2, Verdict.DIFFERS),
        (cells(1e-5, blocks=5), cells(2e-5), 2.0, Verdict.TOO_FEW),
        (cells(1e-5), cells(1.5e-5).query("arm == 'host'"), 1.5, Verdict.BOUNDED),  # no A/A pair
    ):
        pair = compared(first, second)
        (row,) = pair.cells.itertuples(index=False)
        assert (row.arm, row.verdict) == ("host", verdict)
        assert row.ratio == pytest.approx(ratio, rel=0.01)
        assert (row.first_launches, row.second_launches) == (first["block"].nunique(), 10)
        if verdict == Verdict.TOO_FEW:
            assert np.isnan(row.low)
        else:
            assert row.low <= ratio <= row.high, verdict
        lacks_twin = verdict == Verdict.BOUNDED
        assert np.isnan(pair.floors[1]) if lacks_twin else max(pair.floors) < 0.01, verdict
        assert pair.left_out == pair.differences == [], verdict


def test_everything_that_was_recorded_is_compared_but_for_what_always_differs() -> None:
    other = {
        "versions": {"mpi": OPENMPI, "python": "3.12.1"},
        "machine": {"kernel": "6.8", "governor": "performance", "load": "3.00 1 1 1/99 4711"},
        "datapath": {"cma": "refused (EPERM)", "namespaces": {"pid": "pid:[9]"}},
    }
    header = {"git": "def-dirty", "seed": 2, "id": "x", "command": ["y", "run", "--blocks", "6"]}
    pair = compare(
        campaign("a", cells(1e-5), header={"seed": 1}),
        campaign("a", cells(1e-5), environment=other, header=header),
    )
    assert shown(pair) == [
        ("versions.python", "3.11.7", "3.12.1"),
        ("machine.governor", "not recorded", "performance"),
        ("machine.kernel", "6.1", "6.8"),
        ("datapath.cma", "works", "refused (EPERM)"),
        ("command", "invoke run", "invoke run --blocks 6"),
        ("git", "abc", "def-dirty"),
        ("seed", "1", "2"),
        ("load average", "0.01 to 0.01", "3.00 to 3.00"),
    ]


def test_images_and_settings_of_the_experiment_are_among_what_differs() -> None:
    image = {"docker": {"openmpi": {"image": "sha256:1"}}}
    experiment = spec.restrict(spec.load("quick"), blocks=7).to_dict()
    pair = compare(
        campaign("a", cells(1e-5), header={"containers": image}),
        campaign("a", cells(1e-5), header={"experiment": experiment}),
    )
    assert ("containers.docker.openmpi.image", "sha256:1", "not recorded") in shown(pair)
    assert ("experiment.launches.blocks", "10", "7") in shown(pair)


def test_what_varies_within_a_campaign_is_reported_by_mpi_or_arm() -> None:
    both = pd.concat([cells(1e-5), cells(1e-5, mpi="mpich")])
    alike = {"versions": {"mpi": OPENMPI, "python": "3.11.7"}}
    pair = compare(campaign("a", both), campaign("a", both, environment=alike), other_mpi=True)
    differing = Difference("versions.mpi", f"{MPICH} (mpich); {OPENMPI} (openmpi)", OPENMPI)
    assert differing in pair.differences


def test_launches_that_the_other_campaign_lacks_are_no_difference() -> None:
    more = pd.concat([cells(1e-5), cells(1e-5, mpi="mpich")])
    differences = compared(more, cells(1e-5)).differences
    assert "versions.mpi" not in {difference.what for difference in differences}


def test_who_has_a_value_is_named_as_shortly_as_can_be() -> None:
    every = {(arm, mpi) for arm in ("host", "docker") for mpi in ("openmpi", "mpich")}
    named = comparison._named
    assert named({("host", "mpich"), ("docker", "mpich")}, every) == "mpich"
    assert named({("host", "mpich"), ("host", "openmpi")}, every) == "host"
    assert named({("host", "mpich"), ("docker", "mpich"), ("host", "openmpi")}, every) == (
        "mpich, host"
    )
    assert named({("host", "mpich")}, every) == "host with mpich"


def test_different_mpis_are_refused_unless_reported_otherwise() -> None:
    first = campaign("a", cells(1e-5))
    second = campaign("b", cells(2e-5, mpi="mpich"))
    with pytest.raises(ResultsError, match=f"{OPENMPI} against {MPICH}.*pass --other-mpi"):
        compare(first, second)
    pair = compare(first, second, other_mpi=True)
    assert pair.cells["mpi"].tolist() == ["mpich over openmpi"]
    assert pair.cells["ratio"].tolist() == pytest.approx([2.0])


def test_another_version_of_the_same_mpi_is_refused_too() -> None:
    other = {"versions": {"mpi": "Open MPI v5.0.7"}}
    first, second = campaign("a", cells(1e-5)), campaign("b", cells(1e-5), environment=other)
    with pytest.raises(ResultsError, match=r"v5\.0\.11 against Open MPI v5\.0\.7"):
        compare(first, second)
    assert len(compare(first, second, other_mpi=True).cells) == 1


def test_campaigns_without_a_cell_in_common_are_refused_with_the_reason() -> None:
    with pytest.raises(ResultsError, match="share no cell: bytes 1024 against 4096"):
        compared(cells(1e-5), cells(1e-5, bytes=4096))
    crossed = [cells(1e-5, bytes=4096), cells(1e-5, operation="gather")]
    with pytest.raises(ResultsError, match="no combination of them is in both"):
        compared(cells(1e-5), pd.concat(crossed))


def test_cells_of_one_campaign_alone_are_counted() -> None:
    more = pd.concat([cells(1e-5), cells(1e-5, bytes=4096)])
    pair = compared(cells(1e-5), more)
    assert pair.left_out == ["1 of 2 cells are only in the second campaign"]


def test_only_launches_timed_in_groups_of_one_size_are_compared() -> None:
    grouped = cells(1e-5)
    grouped.loc[grouped["block"] < 3, ["group", "median_s"]] = [4, 1.0]
    pair = compared(grouped, cells(1e-5))
    (row,) = pair.cells.itertuples(index=False)
    assert (row.first_launches, row.second_launches) == (7, 10)
    assert row.ratio == pytest.approx(1, rel=0.01)
    every = pd.concat([cells(1e-5), cells(1e-5, bytes=64, group=2)])
    other = pd.concat([cells(1e-5), cells(1e-5, bytes=64, group=4)])
    assert compared(every, other).left_out == [
        "1 cells were timed back to back in groups of different sizes"
    ]


def test_an_emulated_machine_on_either_side_is_a_warning() -> None:
    there = {
        "versions": {"mpi": OPENMPI, "python": "3.11.7"},
        "machine": {"kernel": "6.1", "emulated": "gh200 (tcg)"},
        "topology": {"nodes": numa(2, hbm=1), "hbm": {"rule": "HMAT read bandwidth"}},
    }
    assert compared(cells(1e-5), cells(1e-5)).warning == ""
    pair = compared(cells(1e-5), cells(1e-5), environment=there)
    assert pair.warning.startswith("Emulated machine gh200 (tcg)")
    assert ("machine.emulated", "not recorded", "gh200 (tcg)") in shown(pair)
    assert ("NUMA nodes", "not recorded", "1 with CPUs, 1 without, HBM 1") in shown(pair)


def test_another_mpi_or_other_code_is_refused_and_another_python_is_not() -> None:
    first = {"versions": {"mpi": "5", "python": "3.11"}, "hashes": {"core": "a"}}
    other = {"versions": {"mpi": "4", "python": "3.12"}, "hashes": {"core": "b"}}
    assert metadata_diff.refusals(first, other) == {
        "versions.mpi": ("5", "4"),
        "hashes.core": ("a", "b"),
    }
    assert metadata_diff.refusals(first, first) == {}
