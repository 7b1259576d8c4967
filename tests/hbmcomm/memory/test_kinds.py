"""A kind resolves to the right nodes for where the thread runs, or says why it cannot."""

import pytest

import hbmcomm
from hbmcomm import KindUnavailable

KNL, MAX = "knl_snc4_flat", "xeon_max_snc4_flat"
KNL_0, KNL_3, EVERY_KNL = 0, 60, tuple(range(272))


def test_a_kind_is_these_nodes_by_this_policy(machine) -> None:
    for name, cpus, kind, nodes, policy in (
        (KNL, (KNL_0,), "hbw", (4,), "bind"),
        (KNL, (KNL_3,), "hbw", (7,), "bind"),
        (KNL, (KNL_0, KNL_3), "hbw", (4, 7), "bind"),
        (KNL, EVERY_KNL, "hbw", (4, 5, 6, 7), "bind"),
        (KNL, (KNL_0,), "hbw_all", (4, 5, 6, 7), "bind"),
        (KNL, (KNL_0,), "hbw_preferred", (4,), "preferred"),
        (KNL, (KNL_0,), "hbw_interleave", (4, 5, 6, 7), "interleave"),
        (KNL, (KNL_0,), "regular", (0, 1, 2, 3), "bind"),
        (KNL, (KNL_0,), "highest_capacity_local", (0,), "bind"),
        ("knl_quadrant_flat", (KNL_3,), "hbw", (1,), "bind"),
        (MAX, (0,), "hbw", (8,), "bind"),
        (MAX, (14 * 5,), "hbw", (13,), "bind"),
        (MAX, (0,), "highest_bandwidth_local", (8,), "bind"),
        (MAX, (0,), "highest_bandwidth_local_preferred", (8,), "preferred"),
        (MAX, (0,), "lowest_latency_local", (0,), "bind"),
        (MAX, (0,), "weighted_interleave", tuple(range(16)), "weighted_interleave"),
        (MAX, (0,), "weighted_interleave_local", (0, 8), "weighted_interleave"),
        (MAX, (70,), "weighted_interleave_local", (5, 13), "weighted_interleave"),
        ("cxl", (40,), "weighted_interleave", (0, 1, 2), "weighted_interleave"),
        ("cxl", (0,), "weighted_interleave_local", (0, 2), "weighted_interleave"),
        ("cxl", (40,), "weighted_interleave_local", (1,), "weighted_interleave"),
        ("gh200", (71,), "hbw", (1,), "bind"),
        ("gh200", (71,), "regular", (0,), "bind"),
        ("cxl", (40,), "highest_bandwidth_local", (1,), "bind"),
        ("cxl", (0,), "dax_kmem", (2,), "bind"),
        ("cxl", (0,), "dax_kmem_interleave", (2,), "interleave"),
        ("cxl", (0,), "regular", (0, 1), "bind"),
        ("mi300a", (30,), "hbw", (1,), "bind"),
        ("mi300a", (30,), "regular", (0, 1, 2, 3), "default"),
        ("laptop", (0,), "regular", (0,), "default"),
        ("laptop", (0,), "highest_bandwidth_local", (0,), "bind"),
        ("laptop", (0,), "default", (0,), "default"),
    ):
        resolved = machine(name).kind(kind, cpus)
        shown = (resolved.name, resolved.nodes, resolved.policy, resolved.strict)
        assert shown == (kind, nodes, policy, policy == "bind"), (name, cpus, kind)
        assert resolved.evidence, (name, cpus, kind)


def test_nodes_asked_for_may_be_far_and_are_bound_strictly(machine) -> None:
    far = machine("knl_snc4_flat").kind("hbw_preferred", nodes=(7,))
    assert (far.nodes, far.strict) == ((7,), True)


@pytest.mark.parametrize(
    ("name", "kind", "given", "words"),
    [
        (KNL, "hbw", {"nodes": (0,)}, r"hbw: node 0 is not memory of this kind.* 4-7"),
        (KNL, "regular", {"nodes": (4,)}, "regular: node 4 "),
        (KNL, "hbw", {"allowed": (0, 5)}, r"hbw needs node 4, .* only nodes 0,5 .*cpuset"),
        (KNL, "hbw_all", {"allowed": (0, 4)}, "hbw_all needs node 5-7, "),
        (KNL, "hbw", {"allowed": (0, 4), "nodes": (5,)}, "hbw needs node 5, "),
        # mbind would just narrow it
        (KNL, "hbw", {"allowed": (0, 4), "nodes": (4, 5)}, "hbw needs node 5, "),
        (KNL, "highest_bandwidth_local", {}, "no HMAT values"),
        ("laptop", "dax_kmem", {}, "daxctl reconfigure-device"),
        ("cxl", "weighted_interleave_local", {"allowed": (0,)}, "needs node 2, .* only nodes 0 "),
        (KNL, "weighted_interleave", {}, "no weights for node 0-7 .*need Linux 6.9 .*: take inter"),
        (KNL, "weighted_interleave_local", {}, "no weights for node 0,4 "),
    ],
)
def test_a_kind_that_cannot_be_had_says_why(machine, name, kind, given, words) -> None:
    with pytest.raises(KindUnavailable, match=words):
        machine(name).kind(kind, **given)


def test_ordinary_memory_is_what_the_cpuset_leaves_of_it(machine) -> None:
    knl = machine("knl_snc4_flat")
    assert knl.kind("regular", allowed=(0, 4)).nodes == (0,)
    assert knl.kind("interleave", allowed=(0, 4)).nodes == (0, 4)
    with pytest.raises(KindUnavailable, match="none of the nodes 0-7"):
        knl.kind("regular", allowed=(4,))


def test_weighted_memory_shows_its_weights(machine) -> None:
    max_, cxl = machine("xeon_max_snc4_flat"), machine("cxl")
    assert "is node 0,8 for a thread with CPUs of node 0, with the weights 3:16 of /sys/kernel" in (
        max_.kind("weighted_interleave_local").evidence
    )
    assert "the weights 7:7:2 of" in cxl.kind("weighted_interleave").evidence
    assert cxl.kind("weighted_interleave", allowed=(0, 2)).nodes == (0, 2)
    assert [node.interleave_weight for node in cxl.topology.nodes] == [7, 7, 2]
    assert machine("laptop").topology.nodes[0].interleave_weight is None


def test_no_hbm_says_what_was_looked_at_and_how_to_emulate(machine) -> None:
    with pytest.raises(KindUnavailable) as failure:
        machine("laptop").kind("hbw")
    for word in ("i7-8650U", "HMAT", "dax", "MEMKIND_HBW_NODES=0", "regular"):
        assert word in str(failure.value)


def test_memkinds_own_setting_names_the_dax_nodes(machine, monkeypatch) -> None:
    monkeypatch.setenv("MEMKIND_DAX_KMEM_NODES", "1")
    with_cxl = machine("cxl")
    assert with_cxl.kind("dax_kmem").nodes == (1,)
    monkeypatch.setenv("MEMKIND_DAX_KMEM_NODES", "fast")
    with pytest.raises(KindUnavailable, match="MEMKIND_DAX_KMEM_NODES=fast is not a list"):
        with_cxl.kind("dax_kmem")
    monkeypatch.setenv("MEMKIND_DAX_KMEM_NODES", "1,99")
    with pytest.raises(KindUnavailable, match="=1,99 names node 99; the nodes with memory here"):
        with_cxl.kind("dax_kmem")


def test_an_unknown_kind_is_a_value_error_that_lists_the_known() -> None:
    with pytest.raises(ValueError, match=r"'HBM'.*regular.*hbw_all"):
        hbmcomm.resolve("HBM")


@pytest.mark.parametrize(
    ("nodes", "error", "words"),
    [
        (0, TypeError, "nodes=0: not a list of NUMA nodes"),
        ("0", TypeError, "nodes='0': not a list of NUMA nodes"),
        ([0.0], TypeError, "not a list of NUMA nodes"),
        ([], ValueError, "no NUMA node; give one"),
    ],
)
def test_nodes_that_are_no_list_of_numbers_are_refused(nodes, error, words) -> None:
    with pytest.raises(error, match=words):
        hbmcomm.empty(3, kind="regular", nodes=nodes)


def test_on_this_machine_ordinary_memory_can_be_had() -> None:
    assert hbmcomm.resolve("regular").nodes


def test_hbm_that_is_not_there_is_no_silent_default(monkeypatch) -> None:
    assert hbmcomm.default_kind() in ("hbw", "regular")
    for value, words in (
        ("99", "names node 99; the nodes with memory here"),
        ("x", "is not a list"),
    ):
        monkeypatch.setenv("MEMKIND_HBW_NODES", value)
        for make in (hbmcomm.default_kind, lambda: hbmcomm.empty(3)):
            with pytest.raises(KindUnavailable, match=f"MEMKIND_HBW_NODES={value} {words}"):
                make()
        assert hbmcomm.empty(3, kind="regular").size == 3


def test_emulated_hbm_is_the_default_and_says_that_it_is_emulated(emulated_hbm) -> None:
    assert hbmcomm.default_kind() == "hbw"
    resolved = hbmcomm.resolve("hbw")
    assert (resolved.nodes, resolved.strict, resolved.emulated) == ((0,), True, True)
    assert not hbmcomm.resolve("regular").emulated


WEIGHTED = """
import numpy as np
import hbmcomm
from hbmcomm.memory import kernel
for kind in ("weighted_interleave", "weighted_interleave_local"):
    made = {"own": hbmcomm.ones(500_000, kind=kind)}
    with hbmcomm.numpy_memory(kind):
        made["numpy"], made["small"] = np.ones(500_000), np.ones(3)
    with hbmcomm.Communicator(kind=kind) as comm:
        made["arena"] = comm.ones(500_000)
    for array in made.values():
        policy, nodes = kernel.policy_of(array.ctypes.data)
        assert (policy, nodes) == ("weighted_interleave", hbmcomm.resolve(kind).nodes)
        assert set(hbmcomm.placement(array)) <= set(nodes)
        assert sum(hbmcomm.placement(array).values()) == array.nbytes
    print(*map(hbmcomm.source, made.values()))
"""


def test_weighted_arrays_have_the_kernels_policy_wherever_they_are(python, needs_memkind) -> None:
    if hbmcomm.topology().nodes[0].interleave_weight is None:
        with pytest.raises(KindUnavailable, match=r"they need Linux 6\.9 or newer"):
            hbmcomm.resolve("weighted_interleave")
        return
    result = python(WEIGHTED)
    assert result.stdout == 2 * "mmap memkind memkind arena\n", result.stderr
