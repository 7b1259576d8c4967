"""The CPUs that ranks may be pinned to, by NUMA node, in the order in which they take them."""

import os

import hbmcomm
from experiments.programs.machine import binding, facts


def cpus_by_node() -> dict[int, tuple[int, ...]]:
    """Those that this process may use, as binding.cpu_of() takes them."""
    allowed = os.sched_getaffinity(0)
    siblings = {cpu: facts.siblings(cpu) for cpu in allowed}
    return {
        node.id: binding.first_threads_first(allowed.intersection(node.cpus), siblings)
        for node in hbmcomm.topology().nodes
    }
