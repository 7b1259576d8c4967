"""Which CPU each rank is pinned to."""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence

import hbmcomm
from experiments.machine import facts


def cpus_by_node() -> dict[int, tuple[int, ...]]:
    """The CPUs that this process may use, by NUMA node, as cpu_of() takes them."""
    allowed = os.sched_getaffinity(0)
    siblings = {cpu: facts.siblings(cpu) for cpu in allowed}
    return {
        node.id: first_threads_first(allowed.intersection(node.cpus), siblings)
        for node in hbmcomm.topology().nodes
    }


def first_threads_first(
    cpus: Iterable[int], siblings: Mapping[int, Collection[int]]
) -> tuple[int, ...]:
    """The CPUs in the order in which ranks take them: one thread of every core, then the others.

    Args:
        cpus: those that may be used.
        siblings: the hardware threads of each CPU's core; a CPU that is not named is alone on one.
    """
    usable = sorted(cpus)

    def turn(cpu: int) -> int:
        return sum(other < cpu and other in siblings.get(cpu, ()) for other in usable)

    return tuple(sorted(usable, key=turn))


def cpu_of(rank: int, binding: str, cpus_of_node: Mapping[int, Sequence[int]]) -> int:
    """The CPU of one rank.

    Args:
        rank: 0-based.
        binding: "packed" fills one node before it starts the next; "spread" deals the ranks out
            over the nodes in turn. With more ranks than CPUs both begin again at the first.
        cpus_of_node: the CPUs this process may use, by NUMA node, best first.
    """
    nodes = [list(cpus) for _, cpus in sorted(cpus_of_node.items()) if cpus]
    if binding == "packed":
        order = [cpu for cpus in nodes for cpu in cpus]
    else:
        longest = max(len(cpus) for cpus in nodes)
        order = [cpus[turn] for turn in range(longest) for cpus in nodes if turn < len(cpus)]
    return order[rank % len(order)]
