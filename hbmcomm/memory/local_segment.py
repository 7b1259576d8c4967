"""The segments that this process creates: bound to nodes, and populated as needed."""

from __future__ import annotations

import dataclasses
import weakref
from pathlib import Path
from typing import Any

from hbmcomm.errors import KindUnavailable, OutOfMemory
from hbmcomm.memory import capacity, kernel, procfs, shm_folder
from hbmcomm.memory import segment as segments
from hbmcomm.memory.blocks import why_unbound
from hbmcomm.memory.kinds import Kind, resolve, usable_nodes
from hbmcomm.memory.pool import STEP, Pool, ffi, lib
from hbmcomm.memory.segment import Segment
from hbmcomm.memory.sysfs import format_list

_LARGER_SHM = "enlarge it (docker: --shm-size)"
_LARGER = "enlarge it (mount -o remount,size=BYTES)"


class LocalSegment(Pool):
    """A pool over a segment of this process.

    Attributes:
        segment: What others attach.
        unlinked: Whether its name is removed, so that no further process can map it.
    """

    def __init__(self, kind: Kind, segment: Segment) -> None:
        super().__init__(kind, segment.address, segment.nbytes)
        lib.hbm_heap_fills_itself(self.heap.handle)
        self.segment = segment
        self.unlinked = False
        chosen = segment.locator.backing == "shm" and shm_folder.named() is not None
        self._reserved = chosen and shm_folder.is_hugetlbfs(segment.descriptor)

    def unlink(self) -> None:
        """Remove the segment's name, if it has one."""
        self.segment.unlink()
        self.unlinked = self.segment.locator.backing == "shm"

    def _fill(self, start: int, end: int) -> None:
        kind, nbytes = self.kind, end - start
        room = segments.free_bytes(self.segment.locator.backing)
        if room is not None and nbytes > room:
            raise OutOfMemory(
                f"{kind.name}: asked for {nbytes:,} bytes, {shm_folder.current()} has {room:,} "
                f"left; {_LARGER if shm_folder.named() else _LARGER_SHM}"
            )
        if not kind.strict:  # may spill to any node that is allowed
            kind = dataclasses.replace(kind, nodes=usable_nodes())
        huge = not kind.spread and self._uses_huge_pages(start, end)
        # Reserved pages are not in the free memory of their nodes: only the kernel counts them.
        pieces = ((0, nbytes),) if self._reserved else capacity.steps(kind, nbytes)
        for offset, length in pieces:
            try:
                segments.populate(self.address + start + offset, length, huge)
            except OSError as error:
                where = format_list(kind.nodes)
                more = f", or reserve more huge pages on node {where} (nr_hugepages in its sysfs)"
                raise OutOfMemory(
                    f"{kind.name}: {length:,} bytes of shared memory were refused ({error}); "
                    f"ask for less, or free arrays{more if self._reserved else ''}"
                ) from None

    def _uses_huge_pages(self, _start: int, _end: int) -> bool:
        """Whether huge pages are tried under a range that is populated."""
        return True


class OrdinarySegment(LocalSegment):
    """The ordinary segment of this process: control blocks, staging, and its claim.

    Attributes:
        claim: Address of a claim that this process holds while it lives and has the segment.
    """

    def __init__(self, segment: Segment) -> None:
        """Raises OSError where the kernel has no claims."""
        super().__init__(ordinary_kind(), segment)
        try:
            bind(self.kind, segment)
        except KindUnavailable:  # unbound memory comes from the nearest node with a CPU first
            self.kind = dataclasses.replace(self.kind, policy="default")
        self.claim = self.address + self.take(kernel.PAGE, kernel.PAGE)
        held = lib.hbm_acquire_claim(self.claim, procfs.boot(Path("/proc")))
        if held == ffi.NULL:
            raise OSError(ffi.errno, "no claim on shared memory")
        # The claim must go before its memory: `segment` is an argument to live until then.
        weakref.finalize(self, _give_claim, held, segment).atexit = False

    def _uses_huge_pages(self, start: int, end: int) -> bool:
        """Not under the control blocks of many communicators, which are there to be created fast.

        The first blocks have them, and buffers for staging, which take more than one step.
        """
        return start == 0 or end - start > STEP


def ordinary_kind() -> Kind:
    """Memory next to the CPUs, or whatever this process may use."""
    try:
        return resolve("regular")
    except KindUnavailable:
        return resolve("default")


def bind(kind: Kind, segment: Segment) -> None:
    """Bind all memory of a segment to a kind's nodes.

    Raises:
        KindUnavailable: The kernel refuses, and memory could come from other nodes.
    """
    if kind.policy == "default":
        return
    try:
        kernel.bind(segment.address, segment.nbytes, kind.policy, kind.nodes)
    except OSError as error:
        if not set(usable_nodes()) <= set(kind.nodes):
            raise KindUnavailable(why_unbound(kind, error)) from None


def _give_claim(held: Any, _segment: Segment) -> None:
    lib.hbm_release_claim(held)
