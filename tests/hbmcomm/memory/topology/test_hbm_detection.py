"""The HBM detector gathers all evidence, names the rule that decided, and is not fooled by CXL."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hbmcomm import HbmcommError
from hbmcomm.memory.topology import hbm_detection, procfs, sysfs
from hbmcomm.memory.topology.hbm_detection import Clues


@pytest.fixture
def clues(machine):
    """All clues of a machine, some of them changed."""

    def gather(name: str, **changed) -> Clues:
        here = machine(name)
        return replace(
            Clues(
                nodes=sysfs.nodes(here.sysfs),
                tiers=sysfs.tiers(here.sysfs),
                dax=sysfs.dax_devices(here.sysfs),
                processor=procfs.processor(here.procfs),
                gpu_nodes=procfs.gpu_nodes(here.procfs),
                subtypes={},
                environ={},
            ),
            **changed,
        )

    return gather


def test_every_rule_that_agrees_is_kept_as_evidence(clues) -> None:
    finding = hbm_detection.find(clues("xeon_max_snc4_flat", subtypes={8: "HBM"}))
    of_node_8 = [text for text in finding.evidence if text.startswith("node 8:")]
    assert len(of_node_8) == 3
    assert "410 GB/s, 5.3 times the 77 GB/s" in of_node_8[0]
    assert "hwloc calls it HBM" in of_node_8[1]
    assert "memory tier 2, faster than tier 4" in of_node_8[2]
    assert finding.rule == of_node_8[0]


def test_tiers_decide_where_there_are_no_bandwidths(clues) -> None:
    silent = clues("xeon_max_snc4_flat")
    nodes = tuple(replace(node, read_bandwidth=None) for node in silent.nodes)
    finding = hbm_detection.find(replace(silent, nodes=nodes))
    assert finding.nodes == tuple(range(8, 16))
    assert "memory tier 2" in finding.rule


def test_hwloc_decides_where_nothing_else_knows(clues) -> None:
    finding = hbm_detection.find(clues("gh200", gpu_nodes={}, subtypes={1: "GPUMemory"}))
    assert finding.nodes == (1,)
    assert finding.rule == "node 1: hwloc calls it GPUMemory"


def test_memory_without_cpus_that_nothing_vouches_for_is_not_hbm(clues) -> None:
    assert hbm_detection.find(clues("gh200", gpu_nodes={})).nodes == ()


def test_slow_cxl_is_not_hbm_whatever_the_threshold(clues) -> None:
    with_cxl = clues("cxl")
    assert hbm_detection.find(with_cxl).nodes == ()
    assert (
        hbm_detection.find(replace(with_cxl, environ={"MEMKIND_HBW_THRESHOLD": "50000"})).nodes
        == ()
    )


def test_a_threshold_that_is_no_number_is_refused_by_name(clues) -> None:
    with pytest.raises(
        HbmcommError, match="MEMKIND_HBW_THRESHOLD=fast is no whole number of MiB/s"
    ):
        hbm_detection.find(clues("cxl", environ={"MEMKIND_HBW_THRESHOLD": "fast"}))


def test_a_dax_device_not_in_use_is_told_with_the_command_that_brings_it_in(clues) -> None:
    (note,) = hbm_detection.find(clues("cxl")).evidence
    assert "dax1.0: 64 GiB for node 3" in note
    assert "daxctl reconfigure-device --mode=system-ram dax1.0" in note


def test_the_threshold_decides_below_twice_the_bandwidth(clues) -> None:
    fast = clues("cxl")
    nodes = (*fast.nodes[:2], replace(fast.nodes[2], read_bandwidth=300000 * 2**20))
    assert hbm_detection.find(replace(fast, nodes=nodes)).nodes == (2,)
    assert "above the threshold of 215 GB/s" in hbm_detection.find(replace(fast, nodes=nodes)).rule
    high = replace(fast, nodes=nodes, environ={"MEMKIND_HBW_THRESHOLD": "310000"})
    assert hbm_detection.find(high).nodes == ()


EPYC = {"vendor_id": "AuthenticAMD", "model name": "AMD EPYC 9654 96-Core Processor"}
GRACE = {"CPU implementer": "0x41", "CPU part": "0xd4f"}


@pytest.mark.parametrize("processor", [EPYC, GRACE])
def test_ordinary_memory_of_many_channels_is_not_hbm_though_memkind_would_call_it_so(
    clues, processor
) -> None:
    finding = hbm_detection.find(clues("mi300a", processor=processor))
    assert finding.nodes == ()
    assert "no HBM" in finding.rule
    assert len(finding.evidence) == 4
    for text in finding.evidence:
        assert "memkind alone would call it HBM" in text
        assert "MEMKIND_HBW_NODES=" in text


def test_a_xeon_max_without_dimms_has_nothing_but_hbm(clues) -> None:
    finding = hbm_detection.find(
        clues("mi300a", processor={"model name": "Intel(R) Xeon(R) CPU Max 9480"})
    )
    assert finding.nodes == (0, 1, 2, 3)
    assert "like all memory of this Xeon Max" in finding.rule


def test_a_xeon_max_that_shows_only_its_dimms_has_none_to_place_memory_in(clues) -> None:
    """Cache mode: the nodes are ordinary memory, below the threshold."""
    cached = clues("mi300a", processor={"model name": "Intel(R) Xeon(R) CPU Max 9480"})
    nodes = tuple(replace(node, read_bandwidth=77e9) for node in cached.nodes)
    assert hbm_detection.find(replace(cached, nodes=nodes)).nodes == ()


def test_what_hwloc_calls_hbm_is_hbm_on_nodes_with_cpus_too(clues) -> None:
    subtypes = dict.fromkeys(range(4), "HBM")
    assert hbm_detection.find(clues("mi300a", processor={}, subtypes=subtypes)).nodes == (
        0,
        1,
        2,
        3,
    )


def test_an_a64fx_is_known_without_hmat(clues) -> None:
    a64fx = {"CPU implementer": "0x46", "CPU part": "0x001"}
    finding = hbm_detection.find(clues("laptop", processor=a64fx))
    assert finding.nodes == (0,)
    assert "A64FX" in finding.rule


def test_configuration_beats_everything_and_is_emulation_where_nothing_agrees(clues) -> None:
    finding = hbm_detection.find(clues("laptop", environ={"MEMKIND_HBW_NODES": "0"}))
    assert (finding.nodes, finding.emulated) == ((0,), True)
    assert "MEMKIND_HBW_NODES=0 (emulated" in finding.rule


def test_configuration_that_names_real_hbm_is_no_emulation(clues) -> None:
    finding = hbm_detection.find(clues("knl_snc4_flat", environ={"MEMKIND_HBW_NODES": "4-7"}))
    assert (finding.nodes, finding.emulated) == ((4, 5, 6, 7), False)
    assert finding.rule == "MEMKIND_HBW_NODES=4-7"


def test_configuration_that_names_some_ordinary_node_is_emulation(clues) -> None:
    assert hbm_detection.find(clues("knl_snc4_flat", environ={"MEMKIND_HBW_NODES": "3,4"})).emulated


@pytest.mark.parametrize("value", ["7", "x", "0-"])
def test_configuration_that_fits_no_node_finds_nothing_and_says_so(clues, value: str) -> None:
    finding = hbm_detection.find(clues("laptop", environ={"MEMKIND_HBW_NODES": value}))
    assert finding.nodes == ()
    assert f"MEMKIND_HBW_NODES={value}" in finding.rule
    assert "nodes with memory here are 0" in finding.rule


def test_where_there_is_none_the_finding_says_what_was_looked_at(clues) -> None:
    rule = hbm_detection.find(clues("laptop")).rule
    for word in ("i7-8650U", "HMAT", "no CPUs", "tiers", "dax"):
        assert word in rule
