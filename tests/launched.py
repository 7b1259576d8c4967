"""Results of launches as far as places go: which machine, where the ranks are, where the pages."""

from itertools import product
from typing import Any

from experiments.analysis.arm_order import arm_levels
from experiments.catalogue import spec
from experiments.model.environment import EnvironmentId
from experiments.model.launch import Cell, Launch

GIB = 2**30


def numa(*cpus: int, hbm: int = 0, sockets: int = 1) -> list[dict[str, Any]]:
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


def make_launch(
    machine: str = "knl-snc4-flat",
    *,
    ranks: int = 8,
    binding: str = "packed",
    arm: str = "vm-knl-snc4-flat",
    block: int = 0,
    kinds: tuple[str, ...] = ("regular", "hbw"),
    localities: tuple[str, ...] = ("local", "remote"),
    placed: dict[tuple[str, str, int], dict[int, int]] | None = None,
    skipped: str = "",
    emulated: str = "tcg",
) -> dict[str, Any]:
    """A launch's result as far as places go; a rank's buffers are 2 MiB.

    Args:
        placed: {(kind, locality, rank): {node: bytes}} where pages are elsewhere than asked.
        skipped: why the last kind was not measured; "" where it was.
    """
    nodes = MACHINES[machine]
    homes = [node for node in nodes if node["cpus"]]
    packed = [cpu for node in homes for cpu in node["cpus"]]
    dealt = [cpu for turn in zip(*(node["cpus"] for node in homes), strict=True) for cpu in turn]
    order = packed if binding == "packed" else dealt
    pins = [order[rank % len(order)] for rank in range(ranks)]
    measured = kinds[:-1] if skipped else kinds

    def pool(rank: int, kind: str, locality: str) -> dict[str, Any]:
        home = next(node for node in homes if pins[rank] in node["cpus"])
        fitting = [n["id"] for n in nodes if bool(n["cpus"]) == (kind == "regular")] or [0]
        far = {n: home["distances"][str(n)] for n in fitting}
        edge = max if locality == "remote" else min
        asked = (
            fitting if kind in ("hbw_all", "hbw_interleave") else [edge(far, key=far.__getitem__)]
        )
        spread = {n: 2**21 // len(asked) for n in asked}
        return {
            "kind": kind,
            "locality": locality,
            "emulated": False,
            "nodes": asked,
            "source": "arena",
            "bytes": 2**21,
            "placement_method": "move_pages",
            "placement": {
                str(n): size
                for n, size in ((placed or {}).get((kind, locality, rank)) or spread).items()
            },
        }

    asked = spec.load("placement")
    name, profile, layout = arm_levels(arm)
    launch = Launch(
        *(
            "placement",
            block,
            arm,
            EnvironmentId.parse(name),
            profile,
            layout,
            "harness",
            "openmpi",
            ranks,
            binding,
        ),
        "float32",
        asked.measurement,
        (),
    )
    return {
        "format": 2,
        "launch": launch.to_dict(),
        "environment": {
            "machine": {"emulated": f"{machine} ({emulated})" if emulated else "no"},
            "topology": {
                "nodes": nodes,
                "hbm": {
                    "nodes": [n["id"] for n in nodes if n["is_hbm"]],
                    "rule": "HMAT read bandwidth",
                    "evidence": [],
                    "emulated": False,
                },
            },
        },
        "ranks": [
            {
                "rank": rank,
                "cpu": pins[rank],
                "pools": [pool(rank, *each) for each in product(measured, localities)],
            }
            for rank in range(ranks)
        ],
        "cells": [
            vars(Cell("bcast", "direct", kinds[-1], each, 1024)) | {"skipped": skipped}
            for each in localities
            if skipped
        ],
    }
