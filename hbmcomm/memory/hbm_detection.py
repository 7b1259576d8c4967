"""Decides which NUMA nodes are high-bandwidth memory, and by which rule.

Every rule is tried, and all results are kept as evidence. The first in `RULES` that names a node
decides. Reads nothing itself: it gets the results of `sysfs`, `procfs` and `hwloc`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hbmcomm.errors import HbmcommError
from hbmcomm.memory.sysfs import format_list, parse_list
from hbmcomm.memory.topology import Cache, DaxDevice, HbmFinding, Node, Tier
from hbmcomm.quantities import GIB, MIB

DEFAULT_THRESHOLD = 204800
"""MiB/s from which memkind calls memory high-bandwidth; MEMKIND_HBW_THRESHOLD overrides it."""

RATIO = 2.0
"""Times the bandwidth of the nodes with CPUs that make a node HBM, as in hwloc since 2.10."""


@dataclass(frozen=True)
class Clues:
    """The input of the rules."""

    nodes: tuple[Node, ...]
    tiers: tuple[Tier, ...]
    dax: tuple[DaxDevice, ...]
    caches: tuple[Cache, ...]
    processor: Mapping[str, str]
    gpu_nodes: Mapping[int, str]
    subtypes: Mapping[int, str]
    environ: Mapping[str, str]

    @property
    def with_memory(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.total_bytes)

    @property
    def without_cpus(self) -> tuple[Node, ...]:
        return tuple(node for node in self.with_memory if not node.cpus)


Rule = Callable[[Clues], dict[int, str]]
"""From the clues to {node: why it is high-bandwidth memory}."""


def find(clues: Clues) -> HbmFinding:
    """The nodes that are high-bandwidth memory, with the rule that decided and all evidence."""
    results = [rule(clues) for rule in RULES]
    evidence = [text for sentences in results for text in sentences.values()]
    evidence += _dax_notes(clues) + _cache_notes(clues)
    evidence += [] if any(results) else _fast_notes(clues)
    configured = clues.environ.get("MEMKIND_HBW_NODES", "").strip()
    if configured:
        return _configured(configured, clues, results, evidence)
    for sentences in results:
        if sentences:
            rule = next(iter(sentences.values()))
            return HbmFinding(tuple(sorted(sentences)), rule, tuple(evidence), emulated=False)
    return HbmFinding((), _nothing_found(clues), tuple(evidence), emulated=False)


def by_processor(clues: Clues) -> dict[int, str]:
    """Processors that have high-bandwidth memory, and the nodes where it appears."""
    field = clues.processor.get
    if name := _knights(clues):
        return {
            node.id: f"node {node.id}: the processor is a {name} (CPUID model {field('model')}) "
            "and its MCDRAM is the nodes without CPUs"
            for node in clues.without_cpus
        }
    if field("CPU implementer") == "0x46" and field("CPU part") == "0x001":
        name = "A64FX"
    elif "MI300A" in clues.processor.get("model name", ""):
        name = "MI300A"
    else:
        return {}
    return {
        node.id: f"node {node.id}: the processor is an {name}, and all of its memory is HBM"
        for node in clues.with_memory
    }


def by_bandwidth(clues: Clues) -> dict[int, str]:
    """HMAT's read bandwidths: a multiple of the DRAM's, or more than memkind's threshold.

    A node without CPUs must be faster than the nodes with CPUs, so slow CXL memory never counts.
    Nodes with CPUs count only where all memory passes the threshold and the processor has HBM:
    twelve channels of DDR5, or Grace's LPDDR5X, pass it too (see `_fast_notes`).
    """
    threshold = _threshold(clues.environ)
    known = _bandwidths(clues)
    dram = min(
        (known[node.id] for node in clues.with_memory if node.cpus and node.id in known),
        default=0.0,
    )
    sentences = {}
    for node in clues.without_cpus:
        speed = known.get(node.id, 0.0)
        if dram and speed >= RATIO * dram:
            sentences[node.id] = (
                f"node {node.id}: HMAT read bandwidth {_gb(speed)}, "
                f"{speed / dram:.1f} times the {_gb(dram)} of the nodes with CPUs"
            )
        elif speed >= threshold and speed > dram:
            sentences[node.id] = (
                f"node {node.id}: HMAT read bandwidth {_gb(speed)}, "
                f"above the threshold of {_gb(threshold)}"
            )
    if "CPU Max" in clues.processor.get("model name", ""):
        sentences |= {
            number: f"node {number}: HMAT read bandwidth {_gb(speed)}, above the threshold of "
            f"{_gb(threshold)} like all memory of this Xeon Max"
            for number, speed in _fast_throughout(clues).items()
        }
    return sentences


def by_gpu(clues: Clues) -> dict[int, str]:
    """Memory of a coherent GPU (such as GH200), which NVIDIA's driver adds as a node."""
    return {
        node.id: f"node {node.id}: memory of the GPU at {clues.gpu_nodes[node.id]}"
        for node in clues.without_cpus
        if node.id in clues.gpu_nodes
    }


def by_hwloc(clues: Clues) -> dict[int, str]:
    """Nodes that hwloc gives a subtype of high-bandwidth memory."""
    return {
        node.id: f"node {node.id}: hwloc calls it {clues.subtypes[node.id]}"
        for node in clues.with_memory
        if clues.subtypes.get(node.id) in ("HBM", "MCDRAM", "GPUMemory")
    }


def by_tier(clues: Clues) -> dict[int, str]:
    """A node without CPUs in a faster memory tier of the kernel than every node with CPUs."""
    tier_of = {number: tier.number for tier in clues.tiers for number in tier.nodes}
    dram = min(
        (tier_of[node.id] for node in clues.nodes if node.cpus and node.id in tier_of), default=-1
    )
    return {
        node.id: f"node {node.id}: memory tier {tier_of[node.id]}, "
        f"faster than tier {dram} of the nodes with CPUs"
        for node in clues.without_cpus
        if tier_of.get(node.id, dram) < dram
    }


RULES: tuple[Rule, ...] = (by_processor, by_bandwidth, by_gpu, by_hwloc, by_tier)
"""In order of precedence. MEMKIND_HBW_NODES overrides all of them."""


def _configured(
    text: str, clues: Clues, results: list[dict[int, str]], evidence: list[str]
) -> HbmFinding:
    """The nodes of MEMKIND_HBW_NODES; none, with the reason, for a value that fits no node."""
    here = tuple(node.id for node in clues.with_memory)
    try:
        named = here if text == "all" else parse_list(text)
    except ValueError:
        named = ()
    missing = tuple(number for number in named if number not in here)
    if missing or not named:
        what = f"names node {format_list(missing)}" if missing else "is not a list such as 0 or 4-7"
        rule = (
            f"MEMKIND_HBW_NODES={text} {what}; the nodes with memory here are {format_list(here)}"
        )
        return HbmFinding((), rule, tuple(evidence), emulated=False)
    rule = f"MEMKIND_HBW_NODES={text}"
    emulated = not all(any(number in sentences for sentences in results) for number in named)
    if emulated:
        rule += " (emulated: nothing else says that this is high-bandwidth memory)"
    return HbmFinding(named, rule, (rule, *evidence), emulated)


def _threshold(environ: Mapping[str, str]) -> float:
    """Bytes/s from which memory is high-bandwidth."""
    text = environ.get("MEMKIND_HBW_THRESHOLD") or str(DEFAULT_THRESHOLD)
    if not text.isdecimal():
        raise HbmcommError(
            f"MEMKIND_HBW_THRESHOLD={text} is not a whole number of MiB/s; "
            f"correct it, or unset it (then it is {DEFAULT_THRESHOLD})"
        )
    return int(text) * float(MIB)


def _bandwidths(clues: Clues) -> dict[int, float]:
    return {node.id: node.read_bandwidth for node in clues.with_memory if node.read_bandwidth}


def _fast_throughout(clues: Clues) -> dict[int, float]:
    """{node: bytes/s} where all memory is on nodes with CPUs and passes the threshold, else {}."""
    known, threshold = _bandwidths(clues), _threshold(clues.environ)
    fast = all(speed >= threshold for speed in known.values())
    return known if fast and not clues.without_cpus else {}


def _fast_notes(clues: Clues) -> list[str]:
    """Memory that memkind would call high-bandwidth, without any other evidence."""
    return [
        f"node {number}: HMAT read bandwidth {_gb(speed)}, above the threshold of "
        f"{_gb(_threshold(clues.environ))}: memkind alone would call it HBM; nothing else here "
        f"does, and many channels of DDR are as fast (if it is HBM, set MEMKIND_HBW_NODES={number})"
        for number, speed in _fast_throughout(clues).items()
    ]


def _dax_notes(clues: Clues) -> list[str]:
    """Memory that is available: devices that firmware reserved and that are no NUMA node yet."""
    return [
        f"{device.name}: {device.size_bytes / GIB:.0f} GiB for node {device.target_node}, "
        "HBM or CXL, not in use; it becomes a node by "
        f"daxctl reconfigure-device --mode=system-ram {device.name}"
        for device in clues.dax
        if not device.online
    ]


def _cache_notes(clues: Clues) -> list[str]:
    """Memory that the hardware uses as a cache: it has no addresses, so nothing is placed in it."""
    notes = [
        f"node {cache.node}: behind a memory-side cache of {cache.size_bytes / GIB:.0f} GiB: HBM "
        "in cache mode, or DRAM before slower memory; the hardware fills it, and only a boot in "
        "flat mode makes a node of it"
        for cache in clues.caches
        if cache.node is not None
    ]
    if (name := _knights(clues)) and not clues.without_cpus:
        notes.append(
            f"the processor is a {name} and no node is without CPUs: its MCDRAM is in cache mode; "
            "the hardware fills it, and only a boot in flat mode makes a node of it"
        )
    return notes


def _knights(clues: Clues) -> str | None:
    """The name of a Xeon Phi with MCDRAM, by its CPUID; None for all others."""
    field = clues.processor.get
    if field("vendor_id") != "GenuineIntel" or field("cpu family") != "6":
        return None
    return {"87": "Knights Landing", "133": "Knights Mill"}.get(field("model", ""))


def _nothing_found(clues: Clues) -> str:
    model = clues.processor.get("model name", "unknown")
    speeds = [_gb(node.read_bandwidth) for node in clues.nodes if node.read_bandwidth]
    return (
        f"no HBM: processor {model}; HMAT bandwidths {', '.join(speeds) or 'none'}; "
        f"nodes with memory but no CPUs "
        f"{format_list(tuple(node.id for node in clues.without_cpus))}; "
        f"memory tiers {', '.join(str(tier.number) for tier in clues.tiers) or 'none'}; "
        f"dax devices {', '.join(device.name for device in clues.dax) or 'none'}"
    )


def _gb(bytes_per_second: float) -> str:
    return f"{bytes_per_second / 1e9:.0f} GB/s"
