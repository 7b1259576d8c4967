"""The binding of libmemkind: version, blocks, errors in memkind's own words."""

import re

import pytest

import hbmcomm
from hbmcomm.memory import memkind
from hbmcomm.memory.memkind import MemkindError

pytestmark = pytest.mark.usefixtures("needs_memkind")


def test_the_version_has_three_parts() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", hbmcomm.memkind_version() or "")


def test_a_block_is_aligned_and_can_be_given_back() -> None:
    address = memkind.allocate("regular", 1000, 4096)
    assert address % 4096 == 0
    memkind.free("regular", address)


def test_every_kind_but_the_weighted_is_one_of_memkinds() -> None:
    weighted = {"weighted_interleave", "weighted_interleave_local"}  # newer than memkind's last
    assert {kind for kind in hbmcomm.KINDS if not memkind.has_kind(kind)} == weighted
    assert all(memkind.kind_address(kind) for kind in {*hbmcomm.KINDS} - weighted)


def test_a_refusal_is_in_memkinds_words(python) -> None:
    result = python(
        """
from hbmcomm.memory import memkind
try:
    memkind.allocate("hbw", 100, 64)
except memkind.MemkindError as error:
    print(error)
""",
        emulate=False,
        MEMKIND_HBW_NODES="999",
    )
    assert re.match(r"memkind, asked for kind hbw: <memkind> .* \(-\d+\)", result.stdout), result


@pytest.mark.parametrize("error", ["ENOSYS", "EPERM"])
def test_a_kernel_without_numa_ends_no_process(python, error: str) -> None:
    """memkind aborts where libnuma finds no NUMA, at its first allocation of any kind."""
    result = python(
        """
import sys
import numpy as np
import hbmcomm
for kind in ("regular", "interleave"):
    print(kind, hbmcomm.zeros(1000, kind=kind).sum())
    try:
        with hbmcomm.numpy_memory(kind):
            print(np.ones(1000).sum())
    except hbmcomm.KindUnavailable as error:
        print(error, file=sys.stderr)
""",
        emulate=False,
        refuse=("get_mempolicy", "mbind", "move_pages"),
        as_error=error,
    )
    assert result.returncode == 0, result
    assert {"regular 0.0", "interleave 0.0"} <= {*result.stdout.splitlines()}
    without = "memkind needs a kernel with NUMA policies, and this one has no get_mempolicy"
    assert error == "EPERM" or result.stderr.count(without) == 2, result  # libnuma decides on EPERM


def test_an_impossible_alignment_is_an_error_not_a_crash() -> None:
    with pytest.raises(MemkindError, match="64 bytes of kind regular"):
        memkind.allocate("regular", 64, 3)
