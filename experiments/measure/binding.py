"""Which CPU each rank is pinned to. Pure: nodes and ranks in, CPU out."""

from collections.abc import Mapping, Sequence


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
