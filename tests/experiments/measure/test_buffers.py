"""The buffers of a launch: where remote ones go, and what proves that they are where they should.

A second socket is a copy of this machine's first node with other distances; a list has what a
kind accepts.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

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


@pytest.mark.parametrize(
    ("distances", "accepted", "cpu", "far"),
    [
        (TWO_SOCKETS, (0, 1), 0, 1),
        (TWO_SOCKETS, (0, 1), 1, 0),
        (({0: 10, 1: 13, 2: 21, 3: 23, 4: 31}, {}, {}, {}, {}), (1, 3), 0, 3),
        (({0: 10, 1: 21, 2: 21}, {}, {}), (0, 1, 2), 0, 2),
        (({0: 10}, {}), (0, 1), 0, 1),
    ],
    ids=["other socket", "from there", "farthest accepted", "one of two", "firmware is silent"],
)
def test_remote_is_the_farthest_node_that_the_kind_accepts(
    machine: Callable[..., None], distances: Any, accepted: tuple[int, ...], cpu: int, far: int
) -> None:
    machine(distances, accepted)
    assert remote_nodes("dax_kmem", cpu) == (far,)


@pytest.mark.parametrize("accepted", [(), (0,), (1,)])
def test_one_node_of_a_kind_is_never_remote(machine: Callable[..., None], accepted) -> None:
    machine(TWO_SOCKETS, accepted)
    with pytest.raises(Unavailable, match="hbw far from CPU 0 needs two nodes of that memory"):
        remote_nodes("hbw", 0)


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes some transports fail with an error; the others are their own names."""

    def pretend(error: Exception, *transports: str) -> None:
        def make(comm: None, *, kind: str, transport: str, nodes: None) -> str:
            if transport in transports:
                raise error
            return transport

        monkeypatch.setattr(hbmcomm, "Communicator", make)

    return pretend


def made(*transports: str) -> Any:
    return buffers._communicators(None, "regular", None, transports)  # type: ignore[arg-type]


def test_ranks_that_cannot_share_memory_keep_the_other_transports(
    refusing: Callable[..., None],
) -> None:
    refusing(hbmcomm.ArenaUnavailable("closed"), "direct")
    assert made("direct", "mpi") == ({"mpi": "mpi"}, {"direct": "closed"})
    with pytest.raises(Unavailable, match="closed"):
        made("direct")


@pytest.mark.parametrize("error", [hbmcomm.OutOfMemory, hbmcomm.KindUnavailable])
def test_memory_that_is_not_there_for_one_transport_is_there_for_none(
    refusing: Callable[..., None], error: type[Exception]
) -> None:
    refusing(error("the node is full"), "direct")
    with pytest.raises(Unavailable, match="the node is full"):
        made("direct", "mpi")


STRICT = hbmcomm.Kind("hbw", nodes=(4, 5), policy="bind", emulated=False, evidence="")


@pytest.mark.parametrize(
    "placed", [{}, {4: 4096}, {4: 8192, 0: 1808}, {0: 10000}, {4: 10000, 0: 4096}]
)
def test_a_byte_of_a_strict_kind_elsewhere_or_nowhere_is_reported(placed: dict[int, int]) -> None:
    shown = misplacement("hbw", (4, 5), placed, 10000)
    assert "hbw: all 10000 bytes belong on nodes [4, 5]" in shown
    assert str(placed) in shown


@pytest.mark.parametrize("placed", [{4: 10000}, {4: 8192, 5: 1808}])
def test_buffers_wholly_on_the_nodes_of_their_kind_are_right(placed: dict[int, int]) -> None:
    assert misplacement("hbw", (4, 5), placed, 10000) == ""


def test_a_page_elsewhere_voids_a_launch_of_strict_kinds_alone() -> None:
    assert is_strict(STRICT, (4, 5))
    assert not is_strict(replace(STRICT, policy="preferred"), (4, 5))


ORDINARY = hbmcomm.Kind("regular", nodes=(0, 1), policy="bind", emulated=False, evidence="")


@pytest.mark.parametrize("cpu", [0, 1])
def test_ordinary_memory_belongs_on_the_node_nearest_to_the_ranks_cpu(
    machine: Callable[..., None], cpu: int
) -> None:
    machine(({0: 10, 1: 21, 2: 31}, {0: 21, 1: 10, 2: 31}, {}), accepted=(0, 1))
    assert home_nodes(ORDINARY, cpu) == (cpu,)
    assert home_nodes(replace(ORDINARY, nodes=(1,)), cpu) == (1,)  # asked for as remote
    assert home_nodes(STRICT, cpu) == (4, 5)


@pytest.mark.parametrize(
    ("method", "voids"), [("move_pages", True), ("get_mempolicy", True), ("numa_maps", False)]
)
@pytest.mark.parametrize("policy", ["bind", "default"])
def test_ordinary_memory_on_another_node_voids_a_launch_where_each_page_is_known(
    monkeypatch: pytest.MonkeyPatch, method: str, voids: bool, policy: str
) -> None:
    monkeypatch.setattr(hbmcomm, "placement_method", lambda: method)
    kind = replace(ORDINARY, policy=policy)
    assert is_strict(kind, (1,)) == voids
    assert "belong on nodes [1]" in misplacement("regular", (1,), {0: 4096, 1: 5904}, 10000)


@pytest.mark.ranks
def test_ranks_take_strict_memory_in_turn_and_agree_when_one_has_too_little(mpirun: Start) -> None:
    program = Path(__file__).parents[1] / "ranks" / "one_at_a_time.py"
    mpirun(program, 3, env={"MEMKIND_HBW_NODES": "0"})


NO_HBM = hbmcomm.KindUnavailable("hbw: no HBM")
REFUSED = hbmcomm.KindUnavailable("binding was refused; in a container add --cap-add SYS_NICE")


@pytest.mark.parametrize(
    ("hbm", "kind", "error", "advice"),
    [
        ((), "hbw_all", NO_HBM, ". Here: ./inv run --emulate-hbw"),
        ((), "dax_kmem", NO_HBM, ""),
        ((1,), "hbw", REFUSED, ". Here: ./inv run --profiles tuned"),
        ((1,), "hbw", hbmcomm.KindUnavailable("node 7"), ""),
        ((1,), "hbw", hbmcomm.OutOfMemory("hbw: 3 GiB"), ""),
    ],
)
def test_the_flag_that_may_help_follows_what_the_library_says(
    hbm: tuple[int, ...], kind: str, error: Exception, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = SimpleNamespace(hbm=SimpleNamespace(nodes=hbm))
    monkeypatch.setattr(hbmcomm, "topology", lambda: machine)
    assert advised(kind, error) == f"{error}{advice}"
