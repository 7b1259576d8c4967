"""Makes the kernel refuse system calls to this process, as a container's seccomp profile does."""

import ctypes
import errno
import platform
import struct

from hbmcomm.memory.kernel import NUMBERS

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER = 38, 22, 2
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def refuse(names: tuple[str, ...], error: str) -> None:
    """From now on, in this process and its children, these calls fail with `error`."""
    numbers = [_number(name) for name in names]
    steps = [struct.pack("HBBI", _LOAD, 0, 0, 0)]
    for place, number in enumerate(numbers):
        steps.append(struct.pack("HBBI", _JUMP_IF_EQUAL, len(numbers) - place, 0, number))
    steps.append(struct.pack("HBBI", _RETURN, 0, 0, _ALLOW))
    steps.append(struct.pack("HBBI", _RETURN, 0, 0, _ERRNO | getattr(errno, error)))
    program = _Program(len(steps), b"".join(steps))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (_PR_SET_SECCOMP, _FILTER, program)):
        passed = [ctypes.byref(a) if isinstance(a, _Program) else a for a in arguments]
        if libc.prctl(*passed) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


def _number(name: str) -> int:
    here = platform.machine()
    return {"x86_64": 28, "aarch64": 233}[here] if name == "madvise" else NUMBERS[here][name]
