"""Models of allreduces between hosts: known times, a stored campaign, and what has no model."""

import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from experiments.analysis import cost_of_links
from experiments.analysis.campaign import Campaign
from experiments.analysis.cost_cells import CannotModel, Measured
from experiments.analysis.cost_evaluation import Evaluation, evaluate, relative_error
from experiments.analysis.reading import load
from experiments.results.result import Host
from experiments.results.unarchive import opened
from hbmcomm import costmodel
from tests.refusals import refusal

STORED = Path("docs/data/between_hosts.tar.xz")
RATE = 1e9
LINK = costmodel.Network(alpha=200e-6, bandwidth=RATE / 8)


@pytest.fixture(scope="module")
def campaign() -> Iterator[Campaign]:
    with opened(STORED) as folder:
        yield load(folder)


@pytest.fixture(scope="module")
def evaluation(campaign: Campaign) -> Evaluation:
    return evaluate(cost_of_links.of_links(campaign))


def known() -> Measured:
    """Times that hosts with CPUs of their own would have over LINK."""
    times = [
        {"mpi": "mpich", "transport": name, "operation": cost_of_links.ALLREDUCE, "ranks": hosts}
        | {"bytes": nbytes, "bound_s": nbytes / LINK.bandwidth}
        | {
            "seconds": costmodel.messages_seconds(
                cost_of_links.ALLREDUCE, algorithm, hosts, nbytes, LINK, 0.0
            )
        }
        for (name, algorithm), hosts, nbytes in itertools.product(
            cost_of_links.ALGORITHMS.items(), (2, 4, 8), (2**power for power in range(10, 23, 2))
        )
    ]
    return Measured(
        "by hand", pd.DataFrame(times), cost_of_links.machine(RATE, 8, 8), cost_of_links.ALGORITHMS
    )


def test_times_of_a_known_network_are_found_again_and_on_more_hosts() -> None:
    evaluation = evaluate(known())
    held = evaluation.held_out
    assert relative_error(held, "model").max() < 1e-3
    frame = cost_of_links.on_more_hosts(evaluation, 10_000)
    assert sorted(set(frame["hosts"]))[:3] == [2, 4, 8] and frame["hosts"].max() == 10_000
    for row in frame[frame["hosts"] == 10_000].itertuples():
        expected = costmodel.messages_seconds(
            cost_of_links.ALLREDUCE,
            cost_of_links.ALGORITHMS[row.transport],
            10_000,
            row.bytes,
            LINK,
            0.0,
        )
        assert row.seconds == pytest.approx(expected, rel=1e-3)


def test_a_named_algorithm_is_modelled_by_its_own_counts(evaluation: Evaluation) -> None:
    for (_, name, _), model in evaluation.models.items():
        if name in cost_of_links.ALGORITHMS:
            used = {model.short.algorithm, model.long.algorithm}
            assert used == {cost_of_links.ALGORITHMS[name]}
    assert set(cost_of_links.ALGORITHMS) <= {name for _, name, _ in evaluation.models}


def test_models_of_the_stored_campaign_know_unseen_cells(evaluation: Evaluation) -> None:
    held = evaluation.held_out
    assert len(held) == pytest.approx(len(evaluation.times) / 2, abs=3)
    assert relative_error(held, "model").median() < 0.2


def test_on_real_hosts_nothing_is_slower_than_on_hosts_that_share_cpus(
    evaluation: Evaluation,
) -> None:
    times = evaluation.times.merge(
        cost_of_links.on_more_hosts(evaluation, 8).rename(
            columns={"hosts": "ranks", "seconds": "alone"}
        )
    )
    assert len(times) == len(cost_of_links.ALGORITHMS) * 3 * 7
    assert (times["alone"] <= times["model"] * (1 + 1e-9)).all()


def test_other_campaigns_have_no_links(campaign_folder: Path) -> None:
    assert not cost_of_links.are_in(load(campaign_folder))


def several_ranks(campaign: Campaign) -> Campaign:
    one = campaign.launches[0]
    crowded = dataclasses.replace(one.facts, hosts=(Host((0, 1)),))
    launches = [dataclasses.replace(one, facts=crowded)]
    return dataclasses.replace(campaign, launches=launches)


def unknown_rate(campaign: Campaign) -> Campaign:
    return dataclasses.replace(campaign, cells=campaign.cells.assign(environment="slurm"))


def test_what_models_do_not_know_is_refused(campaign: Campaign) -> None:
    for changed, message in (
        (several_ranks, "has 2 ranks on a host"),
        (unknown_rate, "slurm has links of unknown rate"),
    ):
        assert message in refusal(CannotModel, cost_of_links.of_links, changed(campaign))
