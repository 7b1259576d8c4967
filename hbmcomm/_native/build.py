"""How the C core is compiled: cffi in API mode, one binary for every Python from 3.11 on.

`libraries` declares what Python calls of other libraries: cffi in ABI mode, a generated module.

`interface.h` is both what C includes and what Python may call. The binary also holds the arithmetic
of the parameter server (training/parameter_server/update.h), a client that knows no communicator.
Vector code for newer CPUs is chosen when the binary is loaded, so that it runs on any machine of
its architecture.

CFLAGS of a user come before `flags`, so the last word on rounding is here: ranks whose cores were
compiled by different people get the same bits. A -march or -mcpu of theirs stays.
"""

import sysconfig
from pathlib import Path

from cffi import FFI

HERE = Path(__file__).parent
PARAMETER_SERVER = HERE.parent / "training" / "parameter_server"


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


def _files(suffix: str) -> list[Path]:
    """The sources of the core, and those of the parameter server; not what cffi generates."""
    own = [*HERE.glob(f"*.{suffix}"), *HERE.glob(f"*/*.{suffix}")]
    return sorted([*own, *PARAMETER_SERVER.glob(f"*.{suffix}")])


ffibuilder = FFI()
ffibuilder.cdef((HERE / "interface.h").read_text(encoding="utf-8"))
ffibuilder.cdef((PARAMETER_SERVER / "update.h").read_text(encoding="utf-8"))
ffibuilder.cdef('extern "Python" int hbm_interrupted(void);')
ffibuilder.cdef('extern "Python" int hbm_user_reduces(uintptr_t, const void *, void *, uint64_t);')
ffibuilder.cdef('extern "Python" int hbm_heap_grows(void *, uint64_t, uint64_t);')
ffibuilder.set_source(
    "hbmcomm._native._core",
    '#include "layout.h"\n#include "update.h"',
    sources=[str(path) for path in _files("c") if not path.name.startswith("_")],
    depends=[str(path) for path in (HERE / "build.py", *_files("h"))],
    include_dirs=[str(HERE), str(PARAMETER_SERVER)],
    extra_compile_args=flags(sysconfig.get_platform()),
    extra_link_args=flags(sysconfig.get_platform()),
)

libraries = FFI()
libraries.cdef((HERE / "libraries.cdef").read_text(encoding="utf-8"))
libraries.set_source("hbmcomm._native._libraries", None)
