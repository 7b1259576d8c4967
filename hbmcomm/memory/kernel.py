"""The kernel's calls for memory: map, bind to nodes, populate, and ask on which nodes pages are.

Thin wrappers: plain integers in, plain values out, OSError on refusal. libc has no wrapper for the
policy calls, so they use syscall(2) with the numbers of the architecture. Knows nothing of kinds.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import platform
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Literal

from hbmcomm._native import _libraries

Policy = Literal["bind", "preferred", "interleave", "weighted_interleave", "default"]
PAGE = mmap.PAGESIZE

POLICY_CALLS_IN_A_CONTAINER = (
    "in a container add --cap-add SYS_NICE, or --security-opt seccomp=FILE with a filter that "
    "allows mbind, get_mempolicy and move_pages"
)
"""The remedy where a container engine's default filter refuses the calls below."""

_ffi: Any = _libraries.ffi


def _functions_of_libc(*names: str) -> SimpleNamespace:
    """The functions of libc with these names.

    cffi's object of the library also declares the symbols of memkind and hwloc, so that `hasattr`
    and `dir` of it raise. It must not be an attribute of a module: programs inspect those.
    """
    library = _ffi.dlopen(None)
    return SimpleNamespace(**{name: getattr(library, name) for name in names})


_libc = _functions_of_libc("mmap", "munmap", "madvise", "memset", "sched_getcpu", "syscall")

_CALLS = ("mbind", "get_mempolicy", "move_pages", "memfd_create", "fstatfs")
_GENERIC = (235, 236, 239, 279, 44)
NUMBERS = {
    machine: dict(zip(_CALLS, numbers, strict=True))
    for machine, numbers in {
        "x86_64": (237, 239, 279, 319, 138),
        "ppc64le": (259, 260, 301, 360, 100),
        "aarch64": _GENERIC,
        "riscv64": _GENERIC,
        "loongarch64": _GENERIC,
    }.items()
}
"""System call numbers by architecture (arch/*/include, asm-generic/unistd.h)."""

# include/uapi/linux/mempolicy.h and include/uapi/asm-generic/mman-common.h
_MODES: dict[Policy, int] = {
    "default": 0,
    "preferred": 1,
    "bind": 2,
    "interleave": 3,
    "weighted_interleave": 6,  # since 6.9
}
_PREFERRED_MANY = 5  # since 5.15; "preferred" with more than one node
_POLICIES: dict[int, Policy] = {number: name for name, number in _MODES.items()}
_POLICIES[_PREFERRED_MANY] = "preferred"
_MODE_FLAGS = 0b111 << 13
_BY_ADDRESS = 2
_NODE_OF_ADDRESS = 1 | _BY_ADDRESS
_ALLOWED = 4
_REMOVE = 9  # MADV_REMOVE
_POPULATE_WRITE = 23  # MADV_POPULATE_WRITE, since 5.14
_COLLAPSE = 25  # MADV_COLLAPSE, since 6.1
_PROT_NONE, _READ_WRITE = 0, mmap.PROT_READ | mmap.PROT_WRITE
_MAP_FIXED, _MAP_NORESERVE = 0x10, 0x4000
_MFD_CLOEXEC, _MFD_ALLOW_SEALING, _MFD_NOEXEC_SEAL = 1, 2, 8  # the last since 6.3
_ADD_SEALS, _GET_SEALS = 1033, 1034  # F_ADD_SEALS, F_GET_SEALS
LENGTH_SEALS = 0b111  # F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW: the length is final
_MASK_BITS = 1024  # MAX_NUMNODES is at most this
_WORD = 64


def map_private(nbytes: int, reserve: bool = True) -> int:
    """The address of `nbytes` of new, zero, private memory, page-aligned and not yet populated.

    Args:
        reserve: Whether the system counts it as memory that this process will use.
    """
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | (0 if reserve else _MAP_NORESERVE)
    return _map(0, nbytes, _READ_WRITE, flags)


def map_shared(descriptor: int, nbytes: int, alignment: int) -> int:
    """The address, a multiple of `alignment`, of a mapping of a file that others may map too.

    It takes address space but no memory until its first access, and is not in core dumps.
    """
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
    start = _map(0, nbytes + alignment, _PROT_NONE, flags)
    address = -(-start // alignment) * alignment
    flags = mmap.MAP_SHARED | _MAP_FIXED | _MAP_NORESERVE
    try:
        _map(address, nbytes, _READ_WRITE, flags, descriptor)
    except OSError:
        unmap(start, nbytes + alignment)
        raise
    for edge, length in ((start, address - start), (address + nbytes, start + alignment - address)):
        if length:
            unmap(edge, length)
    _libc.madvise(_pointer(address), nbytes, mmap.MADV_DONTDUMP)
    return address


def memory_file(name: str, nbytes: int) -> int:
    """The descriptor of an anonymous file of fixed length (memfd_create); it holds no memory yet.

    Any process that opens it may write into it, but none can truncate it while others use it.
    `os.memfd_create` is missing in Pythons built for a glibc before 2.27.
    """
    flags = _MFD_CLOEXEC | _MFD_ALLOW_SEALING
    text = _ffi.new("char[]", name.encode())
    try:  # a system may require files that cannot be executed (vm.memfd_noexec)
        descriptor = call("memfd_create", text, _long(flags | _MFD_NOEXEC_SEAL))
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        descriptor = call("memfd_create", text, _long(flags))
    try:
        os.ftruncate(descriptor, nbytes)
        fcntl.fcntl(descriptor, _ADD_SEALS, LENGTH_SEALS)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def has_final_length(descriptor: int) -> bool:
    """Whether no process can make a file shorter or longer (its seals)."""
    try:
        return fcntl.fcntl(descriptor, _GET_SEALS) & LENGTH_SEALS == LENGTH_SEALS
    except OSError:  # not a file in memory
        return False


def file_system(descriptor: int) -> tuple[int, int]:
    """The type (a magic number) and the bytes of a page or block of a file's system (fstatfs)."""
    state = _ffi.new("long[]", 32)  # struct statfs begins with these two
    call("fstatfs", _long(descriptor), state)
    return int(state[0]), int(state[1])


def current_cpu() -> int | None:
    """The CPU that the calling thread runs on now; None where libc does not give it."""
    cpu = int(_libc.sched_getcpu())
    return cpu if cpu >= 0 else None


def unmap(address: int, nbytes: int) -> None:
    if _libc.munmap(_pointer(address), nbytes) != 0:
        raise _refused("munmap")


def bind(address: int, nbytes: int, policy: Policy, nodes: Sequence[int]) -> None:
    """Set which nodes the pages of a range come from (mbind). The range starts on a page."""
    mode = _PREFERRED_MANY if policy == "preferred" and len(nodes) > 1 else _MODES[policy]
    mask = _ffi.new("unsigned long[]", _MASK_BITS // _WORD)
    for node in nodes:
        mask[node // _WORD] |= 1 << node % _WORD
    call("mbind", _pointer(address), _long(nbytes), _long(mode), mask, _long(_MASK_BITS), _long(0))


def policy_of(address: int) -> tuple[Policy, tuple[int, ...]]:
    """The policy of the mapping at `address` and the nodes it names (get_mempolicy)."""
    mode = _ffi.new("int *")
    mask = _ffi.new("unsigned long[]", _MASK_BITS // _WORD)
    flags = _long(_BY_ADDRESS)
    call("get_mempolicy", mode, mask, _long(_MASK_BITS), _pointer(address), flags)
    return _POLICIES.get(mode[0] & ~_MODE_FLAGS, "default"), _nodes_in(mask)


def allowed_nodes() -> tuple[int, ...]:
    """The nodes that this process may allocate on, its cpuset's (get_mempolicy)."""
    mask = _ffi.new("unsigned long[]", _MASK_BITS // _WORD)
    call("get_mempolicy", _ffi.NULL, mask, _long(_MASK_BITS), _ffi.NULL, _long(_ALLOWED))
    return _nodes_in(mask)


def _nodes_in(mask: Any) -> tuple[int, ...]:
    bits, nodes = int.from_bytes(_ffi.buffer(mask), sys.byteorder), []
    while bits:
        nodes.append((bits & -bits).bit_length() - 1)
        bits &= bits - 1
    return tuple(nodes)


def node_of(address: int) -> int:
    """The node that holds the touched page at `address` (get_mempolicy)."""
    node = _ffi.new("int *")
    call("get_mempolicy", node, _ffi.NULL, _long(0), _pointer(address), _long(_NODE_OF_ADDRESS))
    return int(node[0])


def nodes_of(first: int, pages: int) -> list[int]:
    """The node of each of `pages` pages from `first` on, negative for no page (move_pages)."""
    addresses = _ffi.new("uintptr_t[]", [first + PAGE * page for page in range(pages)])
    status = _ffi.new("int[]", pages)
    call("move_pages", _long(0), _long(pages), addresses, _ffi.NULL, status, _long(0))
    return list(status)


def advise_huge_pages(address: int, nbytes: int) -> None:
    """Ask for transparent huge pages in a range; a kernel without them is no error."""
    first, length = _whole_pages(address, nbytes)
    _libc.madvise(_pointer(first), length, mmap.MADV_HUGEPAGE)


def populate(address: int, nbytes: int) -> None:
    """Put memory under the pages of a range, contents unchanged; OSError where it is short."""
    first, length = _whole_pages(address, nbytes)
    if _libc.madvise(_pointer(first), length, _POPULATE_WRITE) == 0:
        return
    if _ffi.errno != errno.EINVAL:
        raise _refused("madvise(MADV_POPULATE_WRITE)")
    memory = _ffi.cast("volatile char *", address)
    for offset in range(0, nbytes, PAGE):
        memory[offset] = memory[offset]


def zero(address: int, nbytes: int) -> None:
    _libc.memset(_pointer(address), 0, nbytes)


def discard(address: int, nbytes: int, shared: bool) -> None:
    """Free the memory of a range's whole pages, shared ones in their file; they are zero at the
    next access. A refusal is ignored."""
    first, last = -(-address // PAGE) * PAGE, (address + nbytes) & -PAGE
    if last > first:
        advice = _REMOVE if shared else mmap.MADV_DONTNEED
        _libc.madvise(_pointer(first), last - first, advice)


def collapse(address: int, nbytes: int) -> None:
    """Move populated memory into huge pages where it fills them (since 6.1); ignores a refusal."""
    _libc.madvise(_pointer(address), nbytes, _COLLAPSE)


def _map(address: int, nbytes: int, access: int, flags: int, descriptor: int = -1) -> int:
    pointer = _libc.mmap(_pointer(address), nbytes, access, flags, descriptor, 0)
    if int(_ffi.cast("intptr_t", pointer)) == -1:
        raise _refused("mmap")
    return int(_ffi.cast("uintptr_t", pointer))


def _whole_pages(address: int, nbytes: int) -> tuple[int, int]:
    first = address & -PAGE
    return first, -(-(address + nbytes) // PAGE) * PAGE - first


def call(name: str, *arguments: Any) -> int:
    number = NUMBERS.get(platform.machine(), {}).get(name)
    if number is None:
        raise OSError(errno.ENOSYS, f"{name}: number unknown on {platform.machine()}")
    result = int(_libc.syscall(number, *arguments))
    if result < 0:
        raise _refused(name)
    return result


def _refused(name: str) -> OSError:
    return OSError(_ffi.errno, f"{name}: {os.strerror(_ffi.errno)}")


def _pointer(address: int) -> Any:
    return _ffi.cast("void *", address)


def _long(value: int) -> Any:
    return _ffi.cast("long", value)
