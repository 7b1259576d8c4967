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
WITHOUT_MEMKIND = """
from hbmcomm.memory import memkind
memkind.SONAME = "libmemkind.so.none"
"""


def test_memkind_serves_the_kinds_that_it_knows(python, needs_memkind) -> None:
    result = python(
        "".join(
            TELL.format(kind=kind, nodes=None)
            for kind in ("regular", "hbw", "hbw_all", "hbw_preferred", "hbw_interleave")
        )
    )
    assert result.stdout == 5 * "memkind {0: 400000}\n", result.stderr


def test_without_memkind_or_for_chosen_nodes_a_bound_mapping_serves(python) -> None:
    result = python(
        TELL.format(kind="hbw", nodes=(0,))
        + WITHOUT_MEMKIND
        + "".join(
            TELL.format(kind=kind, nodes=None)
            for kind in ("regular", "hbw", "hbw_preferred", "hbw_interleave")
        )
    )
    assert result.stdout == 5 * "mmap {0: 400000}\n", result.stderr


def test_memkind_that_looked_for_hbm_too_early_is_not_believed(python, needs_memkind) -> None:
    result = python(
        """
import os
from hbmcomm.memory import memkind
try:
    memkind.allocate("hbw", 100, 64)
except memkind.MemkindError:
    pass
os.environ["MEMKIND_HBW_NODES"] = "0"
"""
        + TELL.format(kind="hbw", nodes=None),
        emulate=False,
    )
    assert result.stdout == "mmap {0: 400000}\n", result.stderr


def test_refused_binding_is_moot_where_there_is_one_node(python) -> None:
    result = python(TELL.format(kind="hbw", nodes=None), refuse=("mbind", "get_mempolicy"))
    assert result.stdout == "mmap {0: 400000}\n", result.stderr


def test_refused_binding_that_matters_names_the_capability_and_the_calls(python) -> None:
    program = """
from hbmcomm.memory import blocks
blocks.usable_nodes = lambda: (0, 1)
"""
    result = python(program + TELL.format(kind="hbw", nodes=None), refuse=("mbind",))
    assert result.stdout.startswith("KindUnavailable hbw: binding memory to node 0 was refused")
    assert "--cap-add SYS_NICE" in result.stdout
    assert "mbind, get_mempolicy and move_pages" in result.stdout


WEIGHTED = """
from dataclasses import replace
from hbmcomm.memory import kinds, machine
read = machine.topology
def with_weights():
    here = read()
    return replace(here, nodes=tuple(replace(node, interleave_weight=1) for node in here.nodes))
machine.topology = with_weights  # also where this kernel is older than 6.9
"""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("EINVAL", "weighted interleaving needs Linux 6.9 or newer: take interleave, or hbw"),
        ("EPERM", "in a container add --cap-add SYS_NICE"),
    ],
)
def test_refused_weights_name_the_kernel_or_the_capability(python, error: str, words: str) -> None:
    program = WEIGHTED + "from hbmcomm.memory import blocks\nblocks.usable_nodes = lambda: (0, 1)\n"
    tell = TELL.format(kind="weighted_interleave", nodes=None)
    result = python(program + tell, refuse=("mbind",), as_error=error)
    asked = "KindUnavailable weighted_interleave: binding memory to node 0 was refused"
    assert result.stdout.startswith(asked) and words in result.stdout, result


@pytest.mark.parametrize("pinned", [True, False])
def test_what_was_had_of_a_block_that_ran_short_goes_back(python, pinned: bool) -> None:
    program = f"""
import hbmcomm, re
from pathlib import Path
from hbmcomm.memory import blocks
from hbmcomm.memory import capacity
def resident():
    return int(re.search(r"RssAnon:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) >> 10
blocks.allocate(hbmcomm.resolve("hbw"), 2**20, {pinned})
before, left = resident(), iter([400 << 20, 400 << 20, 100 << 20])
capacity.free_bytes = lambda nodes: next(left)
try:
    blocks.allocate(hbmcomm.resolve("hbw"), 300 << 20, {pinned})
except hbmcomm.OutOfMemory as error:
    print(resident() - before < 8, error)
"""
    result = python(program)
    assert result.stdout.startswith("True hbw: asked for 300 MiB on node 0 (had "), result


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
