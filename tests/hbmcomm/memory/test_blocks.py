"""Blocks come from memkind where it keeps the promise, else from the kernel, and go back."""

import gc
from pathlib import Path

import pytest

import hbmcomm
from hbmcomm.memory import blocks, kernel

MIB = 2**20

TELL = """
import hbmcomm
try:
    array = hbmcomm.empty(100_000, "float32", kind={kind!r}, nodes={nodes!r})
    array[:] = 1
    print(hbmcomm.source(array), hbmcomm.placement(array))
except hbmcomm.HbmcommError as error:
    print(type(error).__name__, error)
"""
NUMPY_MEMORY = """
try:
    hbmcomm.numpy_memory("hbw").__enter__()
except hbmcomm.KindUnavailable as error:
    print(error)
"""
WITHOUT_MEMKIND = """
from hbmcomm.memory import memkind
memkind.SONAME = "libmemkind.so.none"
"""
LOOKED_TOO_EARLY = """
import os
from hbmcomm.memory import memkind
try:
    memkind.allocate("hbw", 100, 64)
except memkind.MemkindError:
    os.environ["MEMKIND_HBW_NODES"] = "0"
"""
THROUGH_MEMKIND = "numpy_memory('hbw') works through memkind"


def tell(*kinds: str, nodes: tuple[int, ...] | None = None) -> str:
    """A program that prints where an array of each kind comes from."""
    return "".join(TELL.format(kind=kind, nodes=nodes) for kind in kinds)


def test_memkind_serves_the_kinds_that_it_knows(python, needs_memkind) -> None:
    result = python(tell("regular", "hbw", "hbw_all", "hbw_preferred", "hbw_interleave"))
    assert result.stdout == 5 * "memkind {0: 400000}\n", result.stderr


def test_without_memkind_or_for_chosen_nodes_a_bound_mapping_serves(python) -> None:
    mapped = tell("regular", "hbw", "hbw_preferred", "hbw_interleave")
    result = python(tell("hbw", nodes=(0,)) + WITHOUT_MEMKIND + mapped + NUMPY_MEMORY)
    *made, refusal = result.stdout.splitlines()
    assert made == 5 * ["mmap {0: 400000}"], result.stderr
    assert THROUGH_MEMKIND in refusal and "apt-get install libmemkind0" in refusal


def test_memkind_that_looked_for_hbm_too_early_is_not_believed(python, needs_memkind) -> None:
    result = python(LOOKED_TOO_EARLY + tell("hbw") + NUMPY_MEMORY, emulate=False)
    made, refusal = result.stdout.splitlines()
    assert made == "mmap {0: 400000}", result.stderr
    assert THROUGH_MEMKIND in refusal, result.stderr


WEIGHTED = """
from dataclasses import replace
from hbmcomm.memory import kinds, machine
read = machine.topology
def with_weights():
    here = read()
    return replace(here, nodes=tuple(replace(node, interleave_weight=1) for node in here.nodes))
machine.topology = with_weights  # also where this kernel is older than 6.9
"""
ONE_NODE_OF_TWO = """
from hbmcomm.memory import blocks
blocks.usable_nodes = lambda: (0, 1)
"""


def test_refused_binding_is_moot_on_one_node_and_else_names_the_capability_and_the_calls(
    python,
) -> None:
    program = WEIGHTED + tell("hbw") + ONE_NODE_OF_TWO + tell("hbw", "weighted_interleave")
    result = python(program, refuse=("mbind", "get_mempolicy"))
    moot, *refusals = result.stdout.splitlines()
    assert moot == "mmap {0: 400000}", result.stderr
    for kind, refusal in zip(("hbw", "weighted_interleave"), refusals, strict=True):
        assert refusal.startswith(f"KindUnavailable {kind}: binding memory to node 0 was refused")
        assert "in a container add --cap-add SYS_NICE" in refusal
        assert "mbind, get_mempolicy and move_pages" in refusal


def test_weights_that_the_kernel_does_not_know_name_the_kernel(python) -> None:
    program = WEIGHTED + ONE_NODE_OF_TWO + tell("weighted_interleave")
    result = python(program, refuse=("mbind",), as_error="EINVAL")
    asked = "KindUnavailable weighted_interleave: binding memory to node 0 was refused"
    words = "weighted interleaving needs Linux 6.9 or newer: take interleave, or hbw"
    assert result.stdout.startswith(asked) and words in result.stdout, result


RAN_SHORT = """
import hbmcomm, re
from pathlib import Path
from unittest import mock
from hbmcomm.memory import blocks, capacity
def resident():
    return int(re.search(r"RssAnon:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) >> 10
for pinned in (True, False):
    blocks.allocate(hbmcomm.resolve("hbw"), 2**20, pinned)
    before, left = resident(), iter([400 << 20, 400 << 20, 100 << 20])
    with mock.patch.object(capacity, "free_bytes", lambda nodes: next(left)):
        try:
            blocks.allocate(hbmcomm.resolve("hbw"), 300 << 20, pinned)
        except hbmcomm.OutOfMemory as error:
            print(resident() - before < 8, error)
"""


def test_what_was_had_of_a_block_that_ran_short_goes_back(python) -> None:
    result = python(RAN_SHORT)
    lines = result.stdout.splitlines()
    assert len(lines) == 2, result
    for line in lines:
        assert line.startswith("True hbw: asked for 300 MiB on node 0 (had "), result


def test_an_ordinary_block_comes_page_by_page() -> None:
    block = blocks.allocate(hbmcomm.resolve("regular", nodes=None), MIB, pinned=True)
    assert not block.kind.strict
    assert all(node < 0 for node in kernel.nodes_of(block.address, MIB // kernel.PAGE))


def is_mapped(address: int) -> bool:
    """Whether it is in any mapping: the kernel may have joined a block's with a neighbour's."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    bounds = ([int(end, 16) for end in line.split()[0].split("-")] for line in lines)
    return any(begin <= address < end for begin, end in bounds)


def test_a_mapping_is_gone_when_nothing_refers_to_it() -> None:
    block = blocks.allocate(hbmcomm.resolve("regular"), MIB, pinned=True)
    address = block.address
    assert is_mapped(address)
    del block
    gc.collect()
    assert not is_mapped(address)


@pytest.mark.parametrize("pinned", [False, True], ids=["by memkind", "by mmap"])
@pytest.mark.usefixtures("emulated_hbm")
def test_allocating_and_freeing_for_long_does_not_grow(pinned: bool) -> None:
    kind = hbmcomm.resolve("hbw")

    def cycle(times: int) -> None:
        for step in range(times):
            blocks.allocate(kind, MIB + step % 7 * 4096, pinned)

    cycle(50)
    before = resident_bytes()
    cycle(500)
    assert resident_bytes() - before < 16 * MIB  # of 500 MiB that went through


def test_a_failed_allocation_leaves_nothing_behind() -> None:
    before = len(Path("/proc/self/maps").read_text().splitlines())
    for _ in range(20):
        with pytest.raises(MemoryError):
            hbmcomm.empty(2**55, kind="regular")
    assert len(Path("/proc/self/maps").read_text().splitlines()) <= before + 2


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * kernel.PAGE
