"""How the C core is compiled: cffi in API mode, one binary for every Python from 3.11 on.

`libraries` declares what Python calls of other libraries: cffi in ABI mode, a generated module.

`interface.h` is both what C includes and what Python may call. Vector code for newer CPUs is
chosen when the binary is loaded, so that it runs on any machine of its architecture.

CFLAGS of a user come before `flags`, so the last word on rounding is here: ranks whose cores were
compiled by different people get the same bits. A -march or -mcpu of theirs stays.
"""

import sysconfig
from pathlib import Path

from cffi import FFI

HERE = Path(__file__).parent


def flags(platform: str) -> list[str]:
    """The flags of the compiler and of the linker; tests compile the core with the same ones.

    Args:
        platform: For example "linux-aarch64", which a cross-compiler may compile for.
    """
    return [
        *("-std=gnu11", "-pthread", "-O3", "-fvisibility=hidden"),
        # Without debug information, which names folders, the same sources give the same bytes.
        "-g0",
        # The linker needs these as well: with -ffast-math, gcc links code that makes the whole
        # process flush subnormal numbers to 0.
        *("-fno-fast-math", "-fno-unsafe-math-optimizations", "-fno-associative-math"),
        *("-fno-reciprocal-math", "-fno-finite-math-only", "-fsigned-zeros"),
        *("-ffp-contract=off", "-fno-math-errno"),  # after -fno-fast-math, which sets errno
        *(["-mfpmath=sse"] if platform.endswith("x86_64") else []),
    ]


ffibuilder = FFI()
ffibuilder.cdef((HERE / "interface.h").read_text(encoding="utf-8"))
ffibuilder.cdef('extern "Python" int hbm_interrupted(void);')
ffibuilder.cdef('extern "Python" int hbm_user_reduces(uintptr_t, const void *, void *, uint64_t);')
ffibuilder.cdef('extern "Python" int hbm_heap_grows(void *, uint64_t, uint64_t);')
ffibuilder.set_source(
    "hbmcomm._native._core",
    '#include "layout.h"',
    sources=[str(path) for path in sorted((*HERE.glob("[!_]*.c"), *HERE.glob("*/*.c")))],
    depends=[str(path) for path in (HERE / "build.py", *HERE.glob("*.h"), *HERE.glob("*/*.h"))],
    include_dirs=[str(HERE)],
    extra_compile_args=flags(sysconfig.get_platform()),
    extra_link_args=flags(sysconfig.get_platform()),
)

libraries = FFI()
libraries.cdef((HERE / "libraries.cdef").read_text(encoding="utf-8"))
libraries.set_source("hbmcomm._native._libraries", None)
