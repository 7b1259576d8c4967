"""How the C core is compiled: cffi in API mode, one binary for every Python from 3.11 on.

`libraries` declares what Python calls of other libraries: cffi in ABI mode, a generated module.

`interface.h` is both what C includes and what Python may call. Vector code for newer CPUs is
chosen when the binary is loaded, so that it runs on any machine of its architecture.
"""

from pathlib import Path

from cffi import FFI

HERE = Path(__file__).parent

ffibuilder = FFI()
ffibuilder.cdef((HERE / "interface.h").read_text(encoding="utf-8"))
ffibuilder.cdef('extern "Python" int hbm_interrupted(void);')
ffibuilder.cdef('extern "Python" int hbm_user_reduces(uintptr_t, const void *, void *, uint64_t);')
ffibuilder.cdef('extern "Python" int hbm_heap_grows(void *, uint64_t, uint64_t);')
ffibuilder.set_source(
    "hbmcomm._native._core",
    '#include "layout.h"',
    sources=[str(path) for path in sorted(HERE.glob("*/*.c"))],
    depends=[str(path) for path in (HERE / "build.py", *HERE.glob("*.h"), *HERE.glob("*/*.h"))],
    include_dirs=[str(HERE)],
    # Without debug information, which names folders, the same sources give the same bytes.
    extra_compile_args=[
        "-std=gnu11",
        "-O3",
        "-g0",
        "-ffp-contract=off",
        "-fno-math-errno",
        "-fvisibility=hidden",
    ],
    extra_link_args=["-pthread"],
)

libraries = FFI()
libraries.cdef((HERE / "libraries.cdef").read_text(encoding="utf-8"))
libraries.set_source("hbmcomm._native._libraries", None)
