"""Verdicts on memkind's answers: right ones, and each way in which they prove nothing."""

from typing import Any

import pytest

from experiments.emulation import description, memkind_rows
from experiments.emulation.memkind_rows import Row

NONE = {"error": "Requested memory type is not available (-20)", "status": -20}
CRASHED = {"error": "ended with -11"}
MISSING = {"error": "libmemkind.so.0: cannot open shared object file"}
KINDS = ("hbw", "hbw_preferred", "hbw_all", "hbw_interleave", "highest_bandwidth_local")
Answers = dict[str, Any]


def on(policy: str) -> Answers:
    """An answer with its page on the last node that its policy names."""
    return {"policy": policy, "nodes": [int(policy[-1])]}


def answers(hbw: str, every: str, fastest: str) -> Answers:
    """Memkind's answers, by the nodes that it takes."""
    return {
        "regular": on("bind:0"),
        "hbw": on(f"bind:{hbw}"),
        "hbw_preferred": on(f"prefer:{hbw}"),
        "hbw_all": on(f"bind:{every}"),
        "hbw_interleave": on(f"interleave:{every}"),
        "highest_bandwidth_local": on(f"bind:{fastest}"),
    }


QUADRANT = answers("1", "1", "1")
PLAIN = {"regular": on("bind:0")} | dict.fromkeys(KINDS, NONE)


def rows(
    machine: str, text: Answers, version: str | None = "1.14.0", **sources: str
) -> dict[str, Row]:
    """By what they are of; two ranks on node 0 have arrays of these sources."""
    described = description.load(machine)
    memory = {
        kind: {"private": {"source": sources.get(kind, "memkind")}}
        for kind in ("regular", "hbw", "hbw_preferred", "hbw_all", "hbw_interleave")
        if described.found.hbm or kind == "regular"
    }
    found = {
        "memkind_version": version,
        "ranks": [
            {"node": 0, "memkind": text, "memory": memory},
            {"node": 0, "memkind": None, "memory": memory},
        ],
    }
    shown = memkind_rows.rows(described, described.nodes, described.found, found)
    return {
        row.what.removeprefix("memkind's own ").removesuffix(", by node of the CPU"): row
        for row in shown
    }


def wrong(shown: dict[str, Row]) -> list[str]:
    return [what for what, row in shown.items() if not row.ok]


def test_what_is_as_it_should_be_is_right() -> None:
    assert wrong(rows("knl-quadrant-flat", QUADRANT)) == []
    assert wrong(rows("plain", PLAIN)) == []


@pytest.mark.parametrize("failed", [CRASHED, MISSING, {}, {"error": "no (-2)", "status": -2}])
def test_a_memkind_that_cannot_be_asked_has_not_said_that_there_is_none(failed: Answers) -> None:
    everywhere = dict.fromkeys(("regular", *KINDS), failed)
    shown = rows("plain", everywhere)
    assert wrong(shown) == ["REGULAR", *(kind.upper() for kind in KINDS)]
    assert shown["HBW"].found.startswith("0: no answer (")


def test_without_a_version_there_is_no_memkind() -> None:
    assert wrong(rows("plain", PLAIN, version=None)) == ["memkind"]


def test_memkind_is_asked_from_every_node_with_cpus() -> None:
    shown = rows("knl-snc4-flat", answers("4", "4-7", "4"))
    assert not shown["memkind"].ok and shown["memkind"].found.endswith("from nodes 0")
    assert not shown["HBW"].ok


@pytest.mark.parametrize(
    "answer",
    [
        on("bind:0"),
        {"policy": "bind:1", "nodes": [0]},
        {"policy": "bind:1", "nodes": []},
        {"policy": "bind:0-1", "nodes": [1]},
        {"policy": "prefer:1", "nodes": [1]},
        {"policy": "default", "nodes": [1]},
        NONE,
        CRASHED,
    ],
)
def test_memory_that_is_not_where_it_should_be_is_wrong(answer: Answers) -> None:
    assert wrong(rows("knl-quadrant-flat", QUADRANT | {"hbw": answer})) == ["HBW"]


@pytest.mark.parametrize("kind", ["hbw_preferred", "hbw_interleave"])
def test_a_policy_is_the_one_of_its_kind(kind: str) -> None:
    assert wrong(rows("knl-quadrant-flat", QUADRANT | {kind: on("bind:1")})) == [kind.upper()]


def test_hbm_where_there_is_none_is_wrong() -> None:
    assert wrong(rows("plain", PLAIN | {"hbw_all": on("bind:0")})) == ["HBW_ALL"]


def test_what_memkind_can_give_comes_from_memkind() -> None:
    shown = rows("knl-quadrant-flat", QUADRANT, hbw="mmap")["private arrays are given by"]
    assert not shown.ok
    assert shown.found == (
        "every rank: memkind: regular, hbw_preferred, hbw_interleave, hbw_all; mmap: hbw"
    )


def test_what_memkind_takes_for_hbm_and_hbmcomm_does_not_comes_from_mmap() -> None:
    given = answers("0", "0-1", "1")
    others = dict.fromkeys(("hbw", "hbw_preferred", "hbw_all", "hbw_interleave"), "mmap")
    shown = rows("gh200", given, **others)
    assert wrong(shown) == []
    assert "LPDDR5X" in shown["HBW"].why and "LPDDR5X" in shown["HBW_PREFERRED"].why
    assert "passes memkind's threshold" in shown["HBW_ALL"].why
    assert not shown["HIGHEST_BANDWIDTH_LOCAL"].why
    assert wrong(rows("gh200", given)) == ["private arrays are given by"]


def test_all_hbm_is_all_of_it_where_memkind_knows_the_processor() -> None:
    every = rows("knl-snc4-flat", answers("4", "4-7", "4"))["HBW_ALL"]
    assert (every.expected.split("; ")[0], every.found) == ("0: bind:4-7", "0: bind:4-7")
    assert not every.why


def test_all_hbm_is_what_the_kernel_tells_the_cpu_of_elsewhere() -> None:
    every = rows("xeon-max-flat-snc4", answers("8", "8", "8"))["HBW_ALL"]
    assert (every.expected.split("; ")[0], every.found) == ("0: bind:8", "0: bind:8")
    assert "of no other does the kernel tell the bandwidth" in every.why


def test_a_memkind_that_finds_none_has_none_of_any_kind() -> None:
    """So 1.14 did on two nodes with CPUs, one of which had HBM: it wants some for each CPU."""
    machine = description.load("gh200")
    shown = machine.found.model_copy(update={"memkind": ()})
    found = {"memkind_version": "1.14.0", "ranks": [{"node": 0, "memkind": PLAIN, "memory": {}}]}
    rows = list(memkind_rows.rows(machine, machine.nodes, shown, found))
    assert [row.expected for row in rows if "HBW" in row.what] == ["0: none"] * 4
    assert all(row.ok for row in rows if "HBW" in row.what)
