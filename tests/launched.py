"""A launch of the harness, and results of launches as far as places go: which machine, where the
ranks are, where the pages."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, cycle, islice, product
from typing import Any

import pandas as pd

from experiments.analysis import page_placement
from experiments.catalogue import spec
from experiments.model.arms import named
from experiments.model.environment import BARE_HOST
from experiments.model.launch import HARNESS, Cell, Launch, Measurement
from experiments.results.result import Result

LAUNCH = Launch(
    *("test", 0, "host", BARE_HOST, "", "", HARNESS, "openmpi"),
    *(2, "packed", "float32", Measurement(), ()),
)
"""Without cells; tests replace what matters to them."""
_CELL = vars(Cell("bcast", "mpi", "regular", "local", 1024))
_POOL: Mapping[str, Any] = {
    "kind": "regular",
    "locality": "local",
    "emulated": False,
    "nodes": [],
    "source": "arena",
    "placement_method": "move_pages",
    "placement": {},
}
MIB, GIB = 2**20, 2**30
Node = dict[str, Any]
Placed = Mapping[tuple[str, str, int], dict[int, int]]
"""{(kind, locality, rank): {node: bytes}}"""


def numa(*cpus: int, hbm: int = 0, sockets: int = 1) -> list[Node]:
    """Nodes as a result keeps them: one with so many CPUs each, then `hbm` without, one for each.

    The nodes are dealt out to the sockets in order.
    """
    count = len(cpus)
    socket = {n: n % count * sockets // count for n in range(count + hbm)}
    first = [sum(cpus[:n]) for n in range(count)]
    return [
        {
            "id": n,
            "cpus": list(range(first[n], first[n] + cpus[n])) if n < count else [],
            "total_bytes": int(1.5 * GIB) if n < count else GIB // 2,
            "read_bandwidth": None,
            "initiators": [] if n < count else [n - count],
            "is_hbm": n >= count,
            "distances": {
                str(other): 10
                if other == n
                else (17 if other % count == n % count else 21)
                + (10 if socket[n] != socket[other] else 0)
                for other in range(count + hbm)
            },
        }
        for n in range(count + hbm)
    ]


MACHINES = {
    "plain": numa(2),
    "knl-snc4-flat": numa(2, 2, 2, 2, hbm=4),
    "xeon-max-flat-snc4": numa(*[2] * 8, hbm=8, sockets=2),
    "sixty-four": numa(64, hbm=1),
    "caches": numa(*[2] * 16, sockets=2),
}


def made(values: Mapping[str, Any]) -> Result:
    """A result with these fields of its JSON; what they lack is as in LAUNCH, or of no matter."""
    ranks = [
        {"rank": number, "cpu": number}
        | rank
        | {"pools": [{**_POOL, **pool} for pool in rank.get("pools", ())]}
        for number, rank in enumerate(values.get("ranks", ()))
    ]
    launch = LAUNCH.to_dict() | values.get("launch", {})
    cells = [_CELL | cell for cell in values.get("cells", ())]
    given = {"environment": {}, **values, "launch": launch, "cells": cells, "ranks": ranks}
    return Result.of(given)


def page_maps(launches: Iterable[Mapping[str, Any]]) -> tuple[page_placement.PageMap, ...]:
    """The maps of launches that make_launch() made."""
    return page_placement.page_maps(map(Result.of, launches))


def page_rows(launches: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """The rows of launches that make_launch() made."""
    return page_placement.frame(map(Result.of, launches))


def make_launch(
    machine: str = "knl-snc4-flat",
    *,
    ranks: int = 8,
    binding: str = "packed",
    arm: str = "vm-knl-snc4-flat",
    block: int = 0,
    kinds: tuple[str, ...] = ("regular", "hbw"),
    localities: tuple[str, ...] = ("local", "remote"),
    placed: Placed | None = None,
    skipped: str = "",
    emulated: str = "tcg",
) -> dict[str, Any]:
    """A launch's result as far as places go; a rank's buffers are 2 MiB.

    Args:
        placed: where pages are elsewhere than asked.
        skipped: why the last kind was not measured; "" where it was.
    """
    nodes, moved = MACHINES[machine], placed or {}
    measured = list(product(kinds[:-1] if skipped else kinds, localities))
    missing = [vars(Cell("bcast", "direct", kinds[-1], locality, 1024)) for locality in localities]
    parsed = named(arm)
    where = (parsed.environment, parsed.profile, parsed.layout)
    levels = (*where, "harness", "openmpi", ranks, binding)
    asked = spec.load("placement").measurement
    return {
        "format": 2,
        "launch": Launch("placement", block, arm, *levels, "float32", asked, ()).to_dict(),
        "environment": {
            "machine": {"emulated": f"{machine} ({emulated})" if emulated else "no"},
            "topology": {"nodes": nodes, "hbm": _hbm(nodes)},
        },
        "ranks": [
            {
                "rank": rank,
                "cpu": cpu,
                "pools": [
                    _pool(*pair, _asked_nodes(nodes, home, *pair), moved.get((*pair, rank)))
                    for pair in measured
                ],
            }
            for rank, (cpu, home) in enumerate(islice(_cpus(nodes, binding), ranks))
        ],
        "cells": [cell | {"skipped": skipped} for cell in missing if skipped],
    }


def _hbm(nodes: Sequence[Node]) -> dict[str, Any]:
    ids = [node["id"] for node in nodes if node["is_hbm"]]
    return {"nodes": ids, "rule": "HMAT read bandwidth", "evidence": [], "emulated": False}


def _cpus(nodes: Sequence[Node], binding: str) -> Iterator[tuple[int, Node]]:
    """The CPUs that ranks are bound to in turn, again and again, each with its node."""
    homes = [[(cpu, node) for cpu in node["cpus"]] for node in nodes if node["cpus"]]
    return cycle(chain(*(homes if binding == "packed" else zip(*homes, strict=True))))


def _asked_nodes(nodes: Sequence[Node], home: Node, kind: str, locality: str) -> list[int]:
    """The nodes that a rank on `home` asks for; node 0 where the machine has none of the kind."""
    fitting = [node["id"] for node in nodes if bool(node["cpus"]) == (kind == "regular")] or [0]
    if kind in ("hbw_all", "hbw_interleave"):
        return fitting
    edge = max if locality == "remote" else min
    return [edge(fitting, key=lambda number: home["distances"][str(number)])]


def _pool(
    kind: str, locality: str, asked: Sequence[int], placed: Mapping[int, int] | None
) -> dict[str, Any]:
    """A rank's pool; evenly on the nodes that were asked for, unless `placed` has its bytes."""
    placement = placed or dict.fromkeys(asked, 2 * MIB // len(asked))
    return {
        "kind": kind,
        "locality": locality,
        "emulated": False,
        "nodes": list(asked),
        "source": "arena",
        "bytes": 2 * MIB,
        "placement_method": "move_pages",
        "placement": {str(node): size for node, size in placement.items()},
    }
