"""What a reader must know before believing a campaign's figures: one sentence each. Pure.

Knows what launches recorded and their cells; store.py knows how they are stored.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd

from experiments.analysis import disturbed
from experiments.analysis.disturbed import Launches
from experiments.analysis.metadata_diff import flatten
from experiments.analysis.statistics import CLAIM_BLOCKS, CONTAINER, FACTORS, least_p
from experiments.baselines.launches import COUNTERPART
from experiments.model.contender_names import CALLS, MPI_ITSELF
from experiments.model.launch import LeftOut
from experiments.model.mpi_settings import HBW_POLICY
from experiments.model.quantities import counted
from experiments.results import recorded
from experiments.results.result import CellResult, Failure, Pool, Result

Call = tuple[str, str, str, str]
"""The contender, the form and the operation, and what became of them."""
MOST_AWAKE = 0.005  # of a CPU, that a rank may use while another launch is being measured


def cautions(
    header: Mapping[str, Any],
    launches: Launches,
    cells: pd.DataFrame,
    failed: Mapping[str, Failure],
) -> list[str]:
    """Every sentence that this campaign earns.

    Args:
        header: campaign.json.
        cells: launch medians, columns as reading.COLUMNS.
        failed: as results.failed() gives it.
    """
    return [
        *header["missing"],
        *_unfinished(header, launches),
        *_failed(failed),
        *_few_blocks(header["experiment"]["launches"]["blocks"]),
        *_emulated_machine(launches),
        *_emulated(cells),
        *_skipped(launches),
        *left_out(launches.values()),
        *_other_files(launches),
        *_elsewhere(launches),
        *_policies(launches),
        *_moved(launches),
        *disturbed.sentences(launches),
        *_apart(cells),
        *_awake(launches),
        *_in_pairs(launches),
        *_unequal_groups(cells),
        *_other_barriers(cells),
        *_external(launches),
        *_unstable(cells),
    ]


def conditions(launches: Launches, cells: pd.DataFrame) -> Iterator[str]:
    """What is said beside any ratio of times, not only among the cautions: busy CPUs, launches
    that took no turns or took them in pairs, cells that were unstable."""
    yield from disturbed.sentences(launches)
    yield from _apart(cells)
    yield from _in_pairs(launches)
    if share := float(cells["unstable"].astype(bool).mean()):
        yield (
            f"{100 * share:.0f} % of the cells of launches are unstable (standard deviation from "
            "10 % of the mean, or an extreme 50 % off it); the medians of launches are compared"
        )


def _unfinished(header: Mapping[str, Any], launches: Launches) -> Iterator[str]:
    planned = sum(len(block["launches"]) for block in header["schedule"])
    finished = sum(not launch.launch.beside for launch in launches.values())
    if finished < planned:
        yield (
            f"{finished} of {planned} planned launches are finished; complete the campaign "
            "with --resume"
        )


def _failed(failed: Mapping[str, Failure]) -> Iterator[str]:
    """One sentence per arm, MPI and rank count; the reason in its first words."""
    failures: dict[tuple[str, str, int], list[str]] = defaultdict(list)
    for failure in failed.values():
        failures[failure.arm, failure.mpi, failure.ranks].append(failure.reason)
    for (arm, mpi, ranks), reasons in sorted(failures.items()):
        times = "once" if len(reasons) == 1 else f"{len(reasons)} times"
        yield f"{arm} with {mpi}, {ranks} ranks, failed {times}: {' '.join(reasons[0].split())}"


def _few_blocks(blocks: int) -> Iterator[str]:
    if blocks < CLAIM_BLOCKS:
        yield (
            f"{counted(blocks, 'paired block')} per cell: a quick look; the smallest signed-rank p "
            f"to be had is {least_p(blocks):.3f}, and a claim needs {CLAIM_BLOCKS}"
        )


def _emulated_machine(launches: Launches) -> Iterator[str]:
    if warning := recorded.meaning(launch.machine for launch in launches.values()):
        yield warning.removesuffix(".")


def _emulated(cells: pd.DataFrame) -> Iterator[str]:
    kinds = sorted(set(cells.loc[cells["emulated"], "kind"]))
    if kinds:
        yield (
            f"{', '.join(kinds)} is emulated on ordinary memory: its figures show that the path "
            "works, and nothing about the speed of high-bandwidth memory"
        )


def _skipped(launches: Launches) -> Iterator[str]:
    """Reasons that begin alike are one: what follows names processes and files of a launch."""
    by_reason: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for launch in launches.values():
        for reason in (cell.skipped for cell in launch.cells if cell.skipped):
            by_reason[reason.partition(": ")[0]].append((launch.launch.arm, reason))
    for _, cells in sorted(by_reason.items()):
        arms = ", ".join(sorted({arm for arm, _ in cells}))
        yield f"{len(cells)} cells of {arms} were not measured: {cells[0][1]}"


def left_out(launches: Iterable[Result]) -> Iterator[str]:
    """What contenders left out or did wrong where MPIs are the arms."""
    wrong: dict[Call, set[int]] = defaultdict(set)
    failed: dict[Call, set[int]] = defaultdict(set)
    for launch in launches:
        asked = launch.launch
        for cell in launch.cells:
            if cell.wrong:
                call = _call(asked.arm, cell, "left wrong data, not counted")
                wrong[call].add(cell.bytes)
        for loss in asked.without:
            where = f"{asked.arm}, {asked.ranks} ranks"
            call = _call(where, loss, f"left out once it failed: {loss.why}")
            failed[call].add(-1 if loss.bytes is None else loss.bytes)
    for (who, form, operation, outcome), sizes in [*sorted(wrong.items()), *sorted(failed.items())]:
        sized = f"{', '.join(f'{size:,}' for size in sorted(sizes))} bytes"
        what = "any size" if -1 in sizes else sized
        yield f"{who}: {form} {CALLS[operation]} of {what} {outcome}"


def _call(where: str, cell: CellResult | LeftOut, outcome: str) -> Call:
    name = cell.transport
    who = where if name == MPI_ITSELF else f"{name} beside {where}"
    return who, cell.form, cell.operation, outcome


def _other_files(launches: Launches) -> Iterator[str]:
    """Compared within an MPI: each has libraries of its own."""
    seen: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, launch in launches.items():
        for part, value in flatten(launch.facts.hashes).items():
            seen[part, launch.launch.mpi][value].append(name)
    for (part, mpi), names in sorted(seen.items()):
        if len(names) > 1:
            listed = "; ".join(
                f"{value} in {same[0]}" + (f" and {len(same) - 1} more" if same[1:] else "")
                for value, same in sorted(names.items())
            )
            which = f" with {mpi}" if len({flavour for _, flavour in seen}) > 1 else ""
            yield f"the files of {part} are not the same in all launches{which}: {listed}"


def _elsewhere(launches: Launches) -> Iterator[str]:
    """Kinds with pages that the kernel put outside their nodes, as a preferred policy may."""
    placed: dict[str, Counter[str]] = defaultdict(Counter)
    strayed: dict[str, Counter[str]] = defaultdict(Counter)
    for name, pool in _pools(launches):
        for node, size in pool.placement.items():
            placed[pool.kind][name] += size
            if int(node) not in pool.nodes and size:
                strayed[pool.kind][name] += size
    for kind, out in sorted(strayed.items()):
        share = 100 * out.total() / sum(placed[kind][name] for name in out)
        places = counted(len(out), "launch", "es")
        yield f"{kind}: {share:.0f} % of its pages are outside its nodes in {places}"


def _policies(launches: Launches) -> Iterator[str]:
    """What became of the policy of memory that Intel MPI was asked for, as its ranks saw it."""
    seen: dict[tuple[str, str], set[str]] = defaultdict(set)
    for launch in launches.values():
        if policy := launch.launch.hbw_policy:
            shown = launch.facts.datapath.get("memory_policy", "not found")
            seen[launch.launch.arm, policy].add(shown)
    for (arm, policy), policies in sorted(seen.items()):
        shown, asked = ", ".join(sorted(policies)), f"{HBW_POLICY}={policy}"
        if "not found" in policies:
            yield f"{arm}: whether Intel MPI took {asked} is not known: no policy was shown"
        elif "default" in policies:
            yield f"{arm}: Intel MPI did not take {asked}: its ranks choose no nodes for memory"
        else:
            yield f"{arm}: Intel MPI took {asked}: its ranks have memory by {shown}"


def _moved(launches: Launches) -> Iterator[str]:
    """Kinds with pages on other nodes after timing than before; older launches recorded none."""
    moved: dict[str, dict[str, float]] = defaultdict(dict)
    for name, pool in _pools(launches):
        before, after = pool.placement, pool.placement_after
        if after is None:
            continue
        gone = sum(max(0, size - after.get(node, 0)) for node, size in before.items())
        if gone:
            share = gone / sum(before.values())
            moved[pool.kind][name] = max(share, moved[pool.kind].get(name, 0.0))
    for kind, shares in sorted(moved.items()):
        yield (
            f"{kind}: up to {100 * max(shares.values()):.0f} % of a rank's pages moved to other "
            f"nodes while {counted(len(shares), 'launch', 'es')} measured: "
            f"{'its' if len(shares) == 1 else 'their'} times mix both places; turn automatic NUMA "
            "balancing off (sysctl kernel.numa_balancing=0) and measure again"
        )


def _pools(launches: Launches) -> Iterator[tuple[str, Pool]]:
    """Every pool of every rank, with the name of its launch."""
    for name, launch in launches.items():
        for rank in launch.ranks:
            for pool in rank.pools:
                yield name, pool


def _apart(cells: pd.DataFrame) -> Iterator[str]:
    """Launches that took no turns, though their block has other arms to compare them with."""
    campaign = cells[cells["setting"].fillna("") == ""]  # a bench has its pairs within a launch
    arms = campaign[["block", "arm", "company"]].drop_duplicates()
    compared = arms[arms.groupby("block")["arm"].transform("size") > 1]
    apart = int((compared["company"] == "").sum())
    if apart:
        yield (
            f"{apart} of {len(compared)} launches took no turns with the other arms of their block "
            "but ran before or after them: whatever changed on the machine in between is in their "
            "ratios"
        )


def awake(launches: Iterable[Result]) -> dict[tuple[str, str], float]:
    """Largest share of a CPU that a rank used while other launches took their turns.

    Returns:
        By arm and MPI; nothing of launches without company or of formats that did not store it.
    """
    shares: dict[tuple[str, str], float] = {}
    for launch in launches:
        for waited in (rank.asleep for rank in launch.ranks if launch.company):
            if waited.seconds > 0:
                name = (launch.launch.arm, launch.launch.mpi)
                shares[name] = max(shares.get(name, 0.0), waited.cpu / waited.seconds)
    return shares


def _awake(launches: Launches) -> Iterator[str]:
    shares = [
        f"{100 * share:.1f} % in {arm} with {mpi}"
        for (arm, mpi), share in sorted(awake(launches.values()).items())
        if share > MOST_AWAKE
    ]
    if shares:
        yield (
            f"ranks used more than {100 * MOST_AWAKE:g} % of a CPU while they waited for their "
            f"turn and other launches were measured; the largest share: {', '.join(shares)}"
        )


def _in_pairs(launches: Launches) -> Iterator[str]:
    """Blocks with arms that did not take turns all at once."""
    asked = [launch.launch for launch in launches.values()]
    blocks = {launch.block for launch in asked if launch.beside}
    if blocks:
        yield (
            f"in {len(blocks)} of {len({launch.block for launch in asked})} blocks not all arms "
            "took turns at once, as memory was short or a lost launch was measured again: each "
            "took them with the reference arm alone; its ratio is over the launch beside it, and a "
            "ratio of two other arms is that of both over the reference arm"
        )


def _unequal_groups(cells: pd.DataFrame) -> Iterator[str]:
    """Pairs that no ratio counts: their sides were timed in groups of different sizes."""
    for what, free in (
        ("arms", {"arm", *CONTAINER}),
        ("kinds", {"kind", "emulated"}),
        ("transports", {"transport"}),
    ):
        keys = [key for key in ("block", "arm", *FACTORS) if key not in free]
        groups = cells.groupby(keys, observed=True)["group"]
        compared = groups.size() > 1
        unequal = int((groups.nunique()[compared] > 1).sum())
        if unequal:
            yield (
                f"{unequal} of {int(compared.sum())} cells give no ratio between {what} of their "
                "block: the two sides were timed back to back in groups of different sizes"
            )


def _other_barriers(cells: pd.DataFrame) -> Iterator[str]:
    """Arms of a block with unlike barriers: the wait for the last rank differs."""
    keys = [key for key in ("block", *FACTORS) if key not in CONTAINER]
    stored = cells[cells["barrier"].notna() & (cells["barrier"] != "")]
    stored = stored.assign(transport=stored["transport"].replace(COUNTERPART))
    barriers = stored.groupby(keys, observed=True)["barrier"]
    unlike = int((barriers.nunique() > 1).sum())
    if unlike:
        names = " and ".join(sorted(set(stored["barrier"])))
        yield (
            f"in {unlike} of {barriers.ngroups} cells the arms of a block started from different "
            f"barriers ({names}): their ratios include how long ranks wait for the last one"
        )


def _external(launches: Launches) -> Iterator[str]:
    """What is unlike between an external program and the harness, as its launches record it."""
    yield from dict.fromkeys(
        sentence for launch in launches.values() for sentence in launch.external.differences
    )


def _unstable(cells: pd.DataFrame) -> Iterator[str]:
    unstable = cells["unstable"].astype(bool)
    shares = [
        f"{100 * group.mean():.0f} % in {arm} with {ranks} ranks"
        for (arm, ranks), group in unstable.groupby([cells["arm"], cells["ranks"]])
        if group.any()
    ]
    if shares:
        yield (
            "cells unstable within their launch (standard deviation from 10 % of the mean, or an "
            f"extreme 50 % off it): {', '.join(shares)}"
        )
