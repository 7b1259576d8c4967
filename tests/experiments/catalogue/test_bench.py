"""The catalogue's bench, and what flags may change of it."""

import json

import pytest

from experiments.model.contender_names import CALLS, FORMS
from experiments.model.environment import MPIS
from experiments.model.errors import ExperimentsError
from experiments.model.experiment import Experiment
from tests.benches import ask
from tests.refusals import refusal


def test_nothing_said_is_the_papers_three_operations_against_everyone() -> None:
    asked = ask(2)
    factors, launches = asked.factors, asked.launches
    assert factors.operations == ("bcast", "gather", "allreduce")
    of_torch = ("gloo", "torch", "operators", "vllm", "deepspeed", "oneccl")
    assert factors.transports == ("direct", "direct-again", "mpi", "pickle", "objects", *of_torch)
    assert launches.mpis == MPIS and launches.ranks == (2,)
    assert (factors.sizes[0], factors.sizes[-1]) == (8, 16 * 2**20)
    assert factors.forms == ("plain", "persistent")
    assert not launches.tuned
    assert launches.blocks >= 6, "fewer blocks give no interval"


def test_what_is_asked_survives_its_stored_form() -> None:
    asked = ask(2, tuned=True, private=True, against="there", operations="all", forms="nonblocking")
    stored = json.loads(json.dumps(asked.to_dict()))
    assert Experiment.from_dict(stored, "campaign.json") == asked


def test_private_arrays_of_a_bench_are_numpys_of_ordinary_memory() -> None:
    factors = ask(2, private=True).factors
    assert factors.buffers == ("numpy",) and factors.kinds == ("regular",)
    assert ask(2).factors.buffers == ("arena",)


def test_a_contender_of_a_bench_is_no_transport_of_another_campaign() -> None:
    stored = ask(2).to_dict()
    stored["launches"]["arms"] = "environments"
    with pytest.raises(ExperimentsError, match="unknown transports 'direct-again'"):
        Experiment.from_dict(stored, "campaign.json")


def test_names_in_any_case_come_once_and_operations_by_mpi4pys_too() -> None:
    for flag, text, meant in (
        ("operations", "Allreduce", ("allreduce",)),
        ("operations", "allreduce,Bcast", ("allreduce", "bcast")),
        ("operations", "Reduce_scatter_block", ("reduce_scatter",)),
        ("operations", "reduce_scatter, barrier", ("reduce_scatter", "barrier")),
        ("operations", "Allreduce,allreduce", ("allreduce",)),
        ("operations", "all", tuple(CALLS)),
        ("forms", "nonblocking", ("nonblocking",)),
        ("forms", "Nonblocking, plain,plain", ("nonblocking", "plain")),
        ("forms", "all", FORMS),
    ):
        assert getattr(ask(2, **{flag: text}).factors, flag) == meant, text


def test_sizes_and_ranks_are_sorted_and_reported_once() -> None:
    asked = ask("4,2,4", sizes="4KiB,1KiB,4KiB")
    assert asked.factors.sizes == (1024, 4096)
    assert asked.launches.ranks == (2, 4)


def test_without_an_mpi_among_the_peers_one_is_needed_all_the_same() -> None:
    alone = ask(2, peers="pickle")
    assert alone.launches.mpis == ("openmpi",) and "mpi" not in alone.factors.transports
    assert ask(2, peers="pickle,impi").launches.mpis == ("impi",)


def test_what_cannot_be_meant_is_reported_with_what_can() -> None:
    known = "Known: openmpi, mpich, impi, pickle, objects, gloo, torch"
    for flag, value, shown in (
        ("operations", ",", "unknown operations ''; Known: Bcast"),
        ("forms", "blocking", "unknown forms 'blocking'; did you mean 'nonblocking'?"),
        ("peers", "ucx", f"unknown --peers 'ucx'; {known}"),
        ("ranks", "1,2", "2 ranks or more"),
    ):
        assert shown in refusal(ExperimentsError, ask, **{"ranks": 2} | {flag: value}), flag
