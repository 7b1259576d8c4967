"""Where a rank runs, and how many CPUs ranks have together, on recorded machines."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from hbmcomm.memory import cpu_location, kernel
from hbmcomm.memory.capacity import Quota
from hbmcomm.memory.cpu_location import CpuLocation, usable_cpus
from hbmcomm.memory.topology import Cache, Node

POD, JOB, OTHER = (1, 10), (1, 11), (1, 12)
EIGHT = set(range(8))


def of(cpus: set[int], *quotas: Quota) -> CpuLocation:
    return CpuLocation(frozenset(cpus), 0, 0, 0, quotas)


class Sockets(NamedTuple):
    """Two sockets of 4 nodes; two CPUs share a cache."""

    nodes: tuple[Node, ...]
    describe: Callable[[set[int], int | None], CpuLocation]


@pytest.fixture
def sockets(own_machine: Callable[[str], Any]) -> Sockets:
    xeon_max = own_machine("xeon_max_snc4_flat")
    topology = xeon_max.topology
    nodes = tuple(node for node in topology.nodes if node.cpus)
    for node in nodes:
        for cpu in node.cpus:
            folder = xeon_max.sysfs / f"devices/system/cpu/cpu{cpu}/topology"
            folder.mkdir(parents=True)
            (folder / "physical_package_id").write_text(f"{int(node.id >= 4)}\n")
    cpus = range(sum(len(node.cpus) for node in nodes))
    caches = tuple(Cache(3, 2**20, cpus=(cpu, cpu + 1)) for cpu in cpus[::2])
    topology = replace(topology, caches=caches)

    def describe(allowed: set[int], running: int | None) -> CpuLocation:
        return cpu_location.locate(topology, xeon_max.sysfs, frozenset(allowed), running)

    return Sockets(nodes, describe)


def test_a_rank_bound_to_one_core_is_there_wherever_it_runs(sockets: Sockets) -> None:
    first = sockets.nodes[5].cpus[0]
    location = sockets.describe({first}, sockets.nodes[0].cpus[0])
    assert (location.package, location.node, location.cache) == (1, 5, first - first % 2)


def test_a_rank_that_is_not_bound_is_where_it_runs_now(sockets: Sockets) -> None:
    everywhere = {cpu for node in sockets.nodes for cpu in node.cpus}
    for node in (sockets.nodes[0], sockets.nodes[3], sockets.nodes[7]):
        running = node.cpus[3]
        location = sockets.describe(everywhere, running)
        assert location.package == int(node.id >= 4)
        assert (location.node, location.cache) == (node.id, running - running % 2)


def test_a_rank_bound_to_a_node_of_several_caches_is_at_the_cache_of_its_cpu(
    sockets: Sockets,
) -> None:
    node = sockets.nodes[2]
    locations = [sockets.describe(set(node.cpus), cpu) for cpu in node.cpus[:4]]
    assert {location.node for location in locations} == {node.id}
    assert len({location.cache for location in locations}) == 2


def test_where_the_current_cpu_is_unknown_one_of_its_own_counts(sockets: Sockets) -> None:
    bound = {*sockets.nodes[4].cpus, *sockets.nodes[5].cpus}
    assert sockets.describe(bound, None) == sockets.describe(bound, min(bound))


def test_without_caches_and_sockets_ranks_of_a_node_are_together(
    machine: Callable[[str], Any],
) -> None:
    laptop = machine("laptop")
    topology = replace(laptop.topology, caches=())
    every = frozenset(cpu for node in topology.nodes for cpu in node.cpus)
    seen = {cpu_location.locate(topology, laptop.sysfs, every, cpu)[1:] for cpu in sorted(every)}
    assert seen == {(0, topology.nodes[0].id, min(every), ())}


def test_this_process_is_on_one_of_its_cpus() -> None:
    location = cpu_location.of_this_process()
    assert location.cpus == frozenset(os.sched_getaffinity(0))
    assert kernel.current_cpu() in location.cpus
    assert usable_cpus([location]) <= len(location.cpus)


def test_a_process_that_is_bound_runs_there() -> None:
    cpu = max(os.sched_getaffinity(0))
    program = (
        f"import os; os.sched_setaffinity(0, {{{cpu}}})\n"
        "from hbmcomm.memory import kernel; print(kernel.current_cpu())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert int(done.stdout) == cpu


def test_ranks_have_no_more_cpus_together_than_their_masks_and_quotas() -> None:
    pod = Quota(POD, 3.0)
    job, small_job, other = Quota(JOB, 2.0), Quota(JOB, 1.5), Quota(OTHER, 2.0)
    for locations, expected in (
        ([of({0}), of({1})], 2),
        ([of({0, 1})] * 3, 2),
        ([of({0, 1, 2}), of({2, 3})], 4),
        # docker run --cpus=2 on 8 CPUs
        ([of(EIGHT, job)] * 4, 2),
        # two containers of 1.5 CPUs each, and one that may use two CPUs
        ([of(EIGHT, small_job)] * 3 + [of(EIGHT, Quota(OTHER, 1.5))], 3),
        ([of(EIGHT, small_job), of({6, 7})], 3.5),
        # a quota that is no limit to so few CPUs
        ([of({0, 1}, Quota(JOB, 6.0))] * 4, 2),
        # quotas of two containers that share CPUs
        ([of({0, 1}, job), of({0, 1}, other)], 2),
        # a pod of 3 CPUs with containers of 2 and of no limit of their own
        ([of(EIGHT, job, pod), of(EIGHT, other, pod), of(EIGHT, pod)], 3),
        ([of(EIGHT, job, pod)] * 4, 2),
    ):
        for order in (locations, locations[::-1]):
            assert usable_cpus(order) == expected, order
