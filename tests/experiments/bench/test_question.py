"""What the flags of a bench may say, and what they mean."""

from typing import Any

import pytest

from experiments.bench.names import CALLS, FORMS, PEERS
from experiments.bench.question import MOST_RANKS, ask
from experiments.errors import ExperimentsError


def test_nothing_said_is_the_papers_three_operations_against_everyone() -> None:
    asked = ask(2)
    assert asked.operations == ("bcast", "gather", "allreduce")
    assert asked.peers == PEERS
    assert asked.ranks == (2,)
    assert (asked.sizes[0], asked.sizes[-1]) == (8, 16 * 2**20)
    assert asked.forms == ("plain", "persistent")
    assert not asked.tuned and not asked.against
    assert asked.blocks >= 6, "fewer blocks give no interval"
    assert not asked.named


@pytest.mark.parametrize(("cores", "ranks"), [(1, 2), (2, 2), (8, 8), (272, MOST_RANKS)])
def test_one_rank_per_core_up_to_a_limit(cores: int, ranks: int) -> None:
    assert ask(cores).ranks == (ranks,)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("Allreduce", ("allreduce",)),
        ("allreduce,Bcast", ("bcast", "allreduce")),
        ("Reduce_scatter_block", ("reduce_scatter",)),
        ("reduce_scatter, barrier", ("reduce_scatter", "barrier")),
        ("Allreduce,allreduce", ("allreduce",)),
        ("all", tuple(CALLS)),
    ],
)
def test_operations_by_mpi4pys_names_and_ours(said: str, meant: tuple[str, ...]) -> None:
    assert ask(2, operations=said).operations == meant


def test_sizes_and_ranks_are_sorted_and_told_once() -> None:
    asked = ask(4, sizes="4KiB,1KiB,4KiB", ranks="4,2,4")
    assert asked.sizes == (1024, 4096)
    assert asked.ranks == (2, 4)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("nonblocking", ("nonblocking",)),
        ("Nonblocking, plain,plain", ("plain", "nonblocking")),
        ("nonblocking,persistent,plain", FORMS),
    ],
)
def test_forms_come_in_one_order_and_once(said: str, meant: tuple[str, ...]) -> None:
    assert ask(2, forms=said).forms == meant


def test_without_an_mpi_among_the_peers_one_is_needed_all_the_same() -> None:
    assert ask(2, peers="pickle").flavours == ("openmpi",)
    assert ask(2, peers="pickle,impi").flavours == ("impi",)
    assert ask(2, peers="impi").named


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"operations": "Alreduce"}, "--ops: unknown 'Alreduce'; did you mean 'allreduce'?"),
        ({"operations": ","}, "--ops: unknown ''; Known: Bcast"),
        ({"forms": "blocking"}, "--forms: unknown 'blocking'; did you mean 'nonblocking'?"),
        ({"peers": "lam"}, "--peers: unknown 'lam'; Known: openmpi, mpich, impi, pickle, gloo"),
        ({"sizes": "6"}, "multiples of the 4 bytes"),
        ({"ranks": "1,2"}, "2 ranks or more"),
        ({"ranks": "many"}, "ranks 'many' do not parse"),
        ({"ranks": "1000"}, "1000 ranks were asked for; this machine has 2 cores"),
        ({"cadence": "fast"}, "not one of isolated, streaming"),
    ],
)
def test_what_cannot_be_meant_is_told_with_what_can(flags: dict[str, Any], told: str) -> None:
    with pytest.raises(ExperimentsError) as caught:
        ask(2, **flags)
    assert told in str(caught.value)
