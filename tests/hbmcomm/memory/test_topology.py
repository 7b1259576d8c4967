"""Six machines and this one are read as what they are."""

from __future__ import annotations

import shutil

import pytest

import hbmcomm

# machine: nodes, nodes with memory, HBM nodes, a word of the rule that decides
MACHINES = {
    "knl_snc4_flat": (8, 8, (4, 5, 6, 7), "Knights Landing"),
    "knl_quadrant_flat": (2, 2, (1,), "Knights Landing"),
    "xeon_max_snc4_flat": (16, 16, tuple(range(8, 16)), "5.3 times"),
    "gh200": (9, 2, (1,), "GPU at 0009:01:00.0"),
    "cxl": (3, 3, (), "no HBM"),
    "mi300a": (4, 4, (0, 1, 2, 3), "MI300A"),
    "laptop": (1, 1, (), "no HBM"),
}


@pytest.mark.parametrize("name", MACHINES)
def test_the_nodes_and_the_hbm_among_them_are_found(machine, name: str) -> None:
    nodes, with_memory, hbm, rule = MACHINES[name]
    topology = machine(name).topology
    assert len(topology.nodes) == nodes
    assert len(topology.memory_nodes) == with_memory
    assert topology.hbm.nodes == hbm
    assert rule in topology.hbm.rule
    assert not topology.hbm.emulated
    assert tuple(node.id for node in topology.nodes if node.is_hbm) == hbm


def test_every_cpu_has_its_node(machine) -> None:
    topology = machine("knl_snc4_flat").topology
    assert [topology.node_of_cpu(cpu) for cpu in (0, 18, 36, 52, 68, 271)] == [0, 1, 2, 3, 0, 3]
    with pytest.raises(ValueError, match="no CPU 272"):
        topology.node_of_cpu(272)


def test_hbm_belongs_to_its_own_quarter_though_a_siblings_ddr_is_nearer(machine) -> None:
    topology = machine("xeon_max_snc4_flat").topology
    assert topology.node(0).distances[8] > topology.node(0).distances[1]
    assert [topology.local_nodes(node) for node in (0, 3, 4)] == [(0, 8), (3, 11), (4, 12)]


def test_without_hmat_distances_say_to_whom_memory_belongs(machine) -> None:
    topology = machine("knl_snc4_flat").topology
    assert [topology.local_nodes(node) for node in range(4)] == [(0, 4), (1, 5), (2, 6), (3, 7)]


def test_a_kernel_without_numa_support_is_one_node(machine) -> None:
    laptop = machine("laptop")
    shutil.rmtree(laptop.sysfs / "devices/system/node")
    (node,) = laptop.topology.nodes
    assert (node.id, node.total_bytes, node.cpus) == (0, 8 * 2**30, tuple(range(8)))
    assert laptop.kind("regular").nodes == (0,)


def test_this_machine_has_a_node_with_cpus_and_memory() -> None:
    topology = hbmcomm.topology()
    assert any(node.cpus and node.free_bytes for node in topology.nodes)
    assert topology.node(topology.nodes[0].id) == topology.nodes[0]
