"""The HBM detector gathers all evidence, names the rule that decided, and is not fooled by CXL."""

from dataclasses import replace

import pytest

from hbmcomm import HbmcommError
from hbmcomm.memory import hbm_detection, procfs, sysfs
from hbmcomm.memory.hbm_detection import Clues


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
                caches=sysfs.caches(here.sysfs),
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


def test_a_threshold_that_is_no_number_is_refused_by_name(clues) -> None:
    with pytest.raises(
        HbmcommError, match="MEMKIND_HBW_THRESHOLD=fast is not a whole number of MiB/s"
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


XEON_MAX = {"model name": "Intel(R) Xeon(R) CPU Max 9480"}
HWLOC_KNOWS = {"processor": {}, "subtypes": dict.fromkeys(range(4), "HBM")}
A64FX = {"CPU implementer": "0x46", "CPU part": "0x001"}


def configured(nodes: str) -> dict[str, dict[str, str]]:
    return {"environ": {"MEMKIND_HBW_NODES": nodes}}


def test_hbm_is_what_the_first_rule_says(clues) -> None:
    for name, changed, nodes, emulated, rule in (
        ("gh200", {"gpu_nodes": {}, "subtypes": {1: "GPUMemory"}}, (1,), False, "calls it GPUMem"),
        # memory without CPUs that nothing vouches for
        ("gh200", {"gpu_nodes": {}}, (), False, "no HBM"),
        # slow CXL memory, whatever the threshold
        ("cxl", {}, (), False, "no HBM"),
        ("cxl", {"environ": {"MEMKIND_HBW_THRESHOLD": "50000"}}, (), False, "no HBM"),
        # without DIMMs
        ("mi300a", {"processor": XEON_MAX}, (0, 1, 2, 3), False, "all memory of this Xeon Max"),
        # on nodes with CPUs too
        ("mi300a", HWLOC_KNOWS, (0, 1, 2, 3), False, "hwloc calls it HBM"),
        # known without HMAT
        ("laptop", {"processor": A64FX}, (0,), False, "A64FX"),
        # configuration beats everything, and is emulation where nothing agrees
        ("laptop", configured("0"), (0,), True, "MEMKIND_HBW_NODES=0 (emulated"),
        ("knl_snc4_flat", configured("4-7"), (4, 5, 6, 7), False, "MEMKIND_HBW_NODES=4-7"),
        ("knl_snc4_flat", configured("3,4"), (3, 4), True, "(emulated"),
        # configuration that fits no node
        ("laptop", configured("7"), (), False, "=7 names node 7; the nodes with memory here are 0"),
        ("laptop", configured("x"), (), False, "MEMKIND_HBW_NODES=x is not a list"),
        ("laptop", configured("0-"), (), False, "MEMKIND_HBW_NODES=0- is not a list"),
    ):
        finding = hbm_detection.find(clues(name, **changed))
        assert (finding.nodes, finding.emulated) == (nodes, emulated), (name, changed)
        assert rule in finding.rule, (name, changed)


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


def test_a_xeon_max_that_shows_only_its_dimms_has_none_to_place_memory_in(clues) -> None:
    """Cache mode: the nodes are ordinary memory, below the threshold."""
    cached = clues("mi300a", processor=XEON_MAX)
    nodes = tuple(replace(node, read_bandwidth=77e9) for node in cached.nodes)
    assert hbm_detection.find(replace(cached, nodes=nodes)).nodes == ()


def test_where_there_is_none_the_finding_says_what_was_looked_at(clues) -> None:
    rule = hbm_detection.find(clues("laptop")).rule
    for word in ("i7-8650U", "HMAT", "no CPUs", "tiers", "dax"):
        assert word in rule
