"""Ten machines and this one are read as what they are."""

import contextlib
import shutil
from pathlib import Path

import pytest

import hbmcomm
from hbmcomm import KindUnavailable
from hbmcomm.memory import machine as module

# machine: nodes, nodes with memory, HBM nodes, a word of the rule that decides
MACHINES = {
    "knl_snc4_flat": (8, 8, (4, 5, 6, 7), "Knights Landing"),
    "knl_quadrant_flat": (2, 2, (1,), "Knights Landing"),
    "xeon_max_snc4_flat": (16, 16, tuple(range(8, 16)), "5.3 times"),
    "xeon_max_hbm_only": (8, 8, tuple(range(8)), "all memory of this Xeon Max"),
    "xeon_max_cache": (2, 2, (), "no HBM"),
    "knl_cache": (1, 1, (), "no HBM"),
    "gh200": (9, 2, (1,), "GPU at 0009:01:00.0"),
    "cxl": (3, 3, (), "no HBM"),
    "mi300a": (4, 4, (0, 1, 2, 3), "MI300A"),
    "laptop": (1, 1, (), "no HBM"),
}


@pytest.mark.parametrize("name", MACHINES)
def test_the_nodes_and_the_hbm_among_them_are_found(machine, name: str) -> None:
    topology, (*numbers, hbm, rule) = machine(name).topology, MACHINES[name]
    assert [len(topology.nodes), len(topology.memory_nodes)] == numbers
    assert topology.hbm.nodes == hbm and not topology.hbm.emulated
    assert rule in topology.hbm.rule
    assert tuple(node.id for node in topology.nodes if node.is_hbm) == hbm


@pytest.mark.parametrize(
    ("name", "notes"),
    [
        ("xeon_max_cache", ["node 0: behind a memory-side cache of 64 GiB", "node 1: behind a"]),
        ("knl_cache", ["no node is without CPUs: its MCDRAM is in cache mode"]),
        ("knl_quadrant_flat", []),
    ],
)
def test_hbm_that_is_a_cache_is_named_and_not_taken(machine, name: str, notes: list[str]) -> None:
    finding = machine(name).topology.hbm
    shown = [text for text in finding.evidence if "cache" in text]
    assert len(shown) == len(notes)
    for text, note in zip(shown, notes, strict=True):
        assert note in text
        assert "flat mode" in text


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


def test_a_kernel_without_numa_support_is_one_node(own_machine) -> None:
    laptop = own_machine("laptop")
    shutil.rmtree(laptop.sysfs / "devices/system/node")
    (node,) = laptop.topology.nodes
    assert (node.id, node.total_bytes, node.cpus) == (0, 8 * 2**30, tuple(range(8)))
    assert laptop.kind("regular").nodes == (0,)


def test_this_machine_has_a_node_with_cpus_and_memory() -> None:
    topology = hbmcomm.topology()
    assert any(node.cpus and node.free_bytes for node in topology.nodes)
    assert topology.node(topology.nodes[0].id) == topology.nodes[0]


def test_the_farthest_nodes_of_a_kind_are_those_it_may_be_bound_to(machine) -> None:
    for name, kind, cpu, far in (
        ("cxl", "regular", 0, (1,)),
        ("cxl", "regular", 40, (0,)),
        ("cxl", "highest_bandwidth_local", 40, (2,)),
        ("cxl", "dax_kmem", 0, ()),
        ("knl_snc4_flat", "hbw", 0, (5, 6, 7)),
        ("gh200", "hbw", 0, ()),
        ("mi300a", "hbw", 30, (0, 2, 3)),
        ("laptop", "regular", 0, ()),
    ):
        assert farthest(machine(name), kind, cpu) == far, (name, kind, cpu)


def test_emulated_hbm_takes_no_node_from_ordinary_memory(machine, emulated_hbm) -> None:
    assert farthest(machine("cxl"), "regular", cpu=0) == (1,)


def farthest(here, kind: str, cpu: int) -> tuple[int, ...]:
    """The nodes farthest from a CPU among all that the kind accepts when asked for them."""
    topology = here.topology
    accepted = []
    for node in topology.memory_nodes:
        with contextlib.suppress(KindUnavailable):
            accepted += here.kind(kind, nodes=(node,)).nodes
    return topology.farthest(topology.node_of_cpu(cpu), among=tuple(accepted))


def test_hwloc_names_only_special_nodes_or_is_not_there() -> None:
    assert all(isinstance(node, int) and name for node, name in module.subtypes().items())


def test_the_subtype_of_each_node_that_has_one_is_read_from_hwloc(python) -> None:
    program = """
from cffi import FFI
from hbmcomm.memory import machine
try:
    FFI().dlopen(machine.SONAME)
except OSError:
    print("missing")
else:
    print(machine.subtypes())
machine.SONAME = "libhwloc.so.none"
print(machine.subtypes())
"""
    file = Path(__file__).parent / "machines" / "hwloc_hbm.xml"
    subtypes, without = python(program, HWLOC_XMLFILE=str(file)).stdout.splitlines()
    assert without == "{}"
    if subtypes == "missing":
        pytest.skip("libhwloc is not installed (it comes with libmemkind0)")
    assert subtypes == "{1: 'HBM'}"
