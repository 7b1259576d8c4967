"""The buffers of a launch: where remote ones go, and what proves that they are where they should.

A second socket is a copy of this machine's first node with other distances; a list has what a
kind accepts.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mpi4py import MPI

import hbmcomm
from experiments.measure import buffers
from experiments.measure.buffers import (
    Unavailable,
    advised,
    home_nodes,
    is_strict,
    misplacement,
    remote_nodes,
)
from tests.starting import Start

TWO_SOCKETS = ({0: 10, 1: 21}, {0: 21, 1: 10})


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Nodes by their distances, CPU n on node n, and the nodes that the kind asked for accepts."""

    def pretend(distances: tuple[dict[int, int], ...], accepted: tuple[int, ...]) -> None:
        here = hbmcomm.topology()
        nodes = tuple(
            replace(here.nodes[0], id=number, cpus=(number,), distances=known)
            for number, known in enumerate(distances)
        )

        def resolve(kind: str, nodes: tuple[int, ...]) -> None:
            if set(nodes) - set(accepted):
                raise hbmcomm.KindUnavailable(f"{kind} is not on {nodes}")

        monkeypatch.setattr(hbmcomm, "topology", lambda: replace(here, nodes=nodes))
        monkeypatch.setattr(hbmcomm, "resolve", resolve)

    return pretend


def test_remote_is_the_farthest_node_that_the_kind_accepts(machine: Callable[..., None]) -> None:
    for case, distances, accepted, cpu, far in (
        ("other socket", TWO_SOCKETS, (0, 1), 0, 1),
        ("from there", TWO_SOCKETS, (0, 1), 1, 0),
        ("accepted", ({0: 10, 1: 13, 2: 21, 3: 23, 4: 31}, {}, {}, {}, {}), (1, 3), 0, 3),
        ("one of two", ({0: 10, 1: 21, 2: 21}, {}, {}), (0, 1, 2), 0, 2),
        ("firmware is silent", ({0: 10}, {}), (0, 1), 0, 1),
    ):
        machine(distances, accepted)
        assert remote_nodes("dax_kmem", cpu) == (far,), case


def test_one_node_of_a_kind_is_never_remote(machine: Callable[..., None]) -> None:
    for accepted in ((), (0,), (1,)):
        machine(TWO_SOCKETS, accepted)
        with pytest.raises(Unavailable, match="hbw far from CPU 0 needs two nodes of that memory"):
            remote_nodes("hbw", 0)


def made(monkeypatch: pytest.MonkeyPatch, refusal: Exception, *transports: str) -> buffers.Pool:
    """Private memory of one rank for these transports, of which direct is refused."""

    def make(comm: Any, *, kind: str, transport: str, nodes: None) -> Any:
        if transport == "direct":
            raise refusal
        return SimpleNamespace(empty=None)

    monkeypatch.setattr(hbmcomm, "Communicator", make)
    memory, cpu = ("regular", "local", "private"), min(os.sched_getaffinity(0))
    return buffers.make_pool(MPI.COMM_SELF, memory, transports, "float32", (1000, 1000), cpu)


def test_without_shared_memory_other_transports_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = hbmcomm.ArenaUnavailable("closed")
    pool = made(monkeypatch, closed, "direct", "mpi")
    assert (set(pool.communicators), pool.lacking) == ({"mpi"}, {"direct": "closed"})
    with pytest.raises(Unavailable, match="closed"):
        made(monkeypatch, closed, "direct")


def test_memory_that_one_transport_lacks_all_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (hbmcomm.OutOfMemory, hbmcomm.KindUnavailable):
        with pytest.raises(Unavailable, match="the node is full"):
            made(monkeypatch, error("the node is full"), "direct", "mpi")


STRICT = hbmcomm.Kind("hbw", nodes=(4, 5), policy="bind", emulated=False, evidence="")


def test_a_byte_of_a_strict_kind_elsewhere_or_nowhere_is_reported() -> None:
    for placed in ({}, {4: 4096}, {4: 8192, 0: 1808}, {0: 10000}, {4: 10000, 0: 4096}):
        shown = misplacement("hbw", (4, 5), placed, 10000)
        assert "hbw: all 10000 bytes belong on nodes [4, 5]" in shown
        assert str(placed) in shown
    for placed in ({4: 10000}, {4: 8192, 5: 1808}):
        assert misplacement("hbw", (4, 5), placed, 10000) == "", placed


def test_a_page_elsewhere_voids_a_launch_of_strict_kinds_alone() -> None:
    assert is_strict(STRICT, (4, 5))
    assert not is_strict(replace(STRICT, policy="preferred"), (4, 5))


ORDINARY = hbmcomm.Kind("regular", nodes=(0, 1), policy="bind", emulated=False, evidence="")


def test_ordinary_memory_belongs_on_the_nearest_node(machine: Callable[..., None]) -> None:
    machine(({0: 10, 1: 21, 2: 31}, {0: 21, 1: 10, 2: 31}, {}), accepted=(0, 1))
    for cpu in (0, 1):
        assert home_nodes(ORDINARY, cpu) == (cpu,)
        assert home_nodes(replace(ORDINARY, nodes=(1,)), cpu) == (1,)  # asked for as remote
        assert home_nodes(STRICT, cpu) == (4, 5)


def test_ordinary_memory_on_another_node_voids_a_launch_where_each_page_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for method, voids in (("move_pages", True), ("get_mempolicy", True), ("numa_maps", False)):
        monkeypatch.setattr(hbmcomm, "placement_method", lambda method=method: method)
        for policy in ("bind", "default"):
            assert is_strict(replace(ORDINARY, policy=policy), (1,)) == voids, method
    assert "belong on nodes [1]" in misplacement("regular", (1,), {0: 4096, 1: 5904}, 10000)


@pytest.mark.ranks
def test_ranks_take_strict_memory_in_turn_and_agree_when_one_has_too_little(mpirun: Start) -> None:
    program = Path(__file__).parents[1] / "ranks" / "one_at_a_time.py"
    mpirun(program, 3, env={"MEMKIND_HBW_NODES": "0"})


NO_HBM = hbmcomm.KindUnavailable("hbw: no HBM")
REFUSED = hbmcomm.KindUnavailable("binding was refused; in a container add --cap-add SYS_NICE")


def test_the_flag_that_may_help_follows_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for hbm, kind, error, advice in (
        ((), "hbw_all", NO_HBM, ". Here: ./inv run --emulate-hbw"),
        ((), "dax_kmem", NO_HBM, ""),
        ((1,), "hbw", REFUSED, ". Here: ./inv run --profiles tuned"),
        ((1,), "hbw", hbmcomm.KindUnavailable("node 7"), ""),
        ((1,), "hbw", hbmcomm.OutOfMemory("hbw: 3 GiB"), ""),
    ):
        machine = SimpleNamespace(hbm=SimpleNamespace(nodes=hbm))
        monkeypatch.setattr(hbmcomm, "topology", lambda machine=machine: machine)
        assert advised(kind, error) == f"{error}{advice}"
