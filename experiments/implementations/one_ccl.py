"""oneCCL as a contender: over Intel MPI, where its wheels are installed beside that.

torch's binding of it for CPUs ended with torch 2.8, so its own interface is called, in C++. A
call runs in the thread that makes it, which takes less time than a worker thread.
"""

import hashlib
import importlib.util
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

from cffi import FFI
from mpi4py import MPI

from experiments.implementations.contender import Contender, ContenderMissing, on_all
from experiments.measure.operations import Array, Ready
from experiments.model.checkout import BUILD
from experiments.processes import scratch

SOURCE = Path(__file__).with_name("one_ccl.cpp")
NAME = "hbmcomm_oneccl"
ADDRESS = 256  # bytes of the address by which its ranks meet
OPERATIONS = ("allreduce", "bcast", "allgather", "alltoall", "reduce_scatter")
DECLARED = "void offer(char *address); void enter(int ranks, int rank, const char *address);"
DECLARED += "".join(f"void {name}(float *send, float *recv, size_t count);" for name in OPERATIONS)


def make(comm: MPI.Intracomm, mpi: str) -> Contender:
    """oneCCL's calls over `mpi`, which started these ranks; a collective.

    Raises:
        ContenderMissing: they are not Intel MPI's, it is not installed, or its calls cannot be
            compiled.
    """
    module = on_all(comm, partial(_load, mpi))
    ffi, lib = module.ffi, module.lib
    os.environ.setdefault("CCL_WORKER_OFFLOAD", "0")
    os.environ.setdefault("CCL_LOG_LEVEL", "error")
    address = ffi.new("char[]", ADDRESS)
    if comm.rank == 0:
        lib.offer(address)
    given = comm.bcast(bytes(ffi.buffer(address)))
    lib.enter(comm.size, comm.rank, ffi.from_buffer(given))

    def ready(operation: str, send: Array, recv: Array) -> Ready | None:
        if operation not in OPERATIONS:
            return None
        given, taken = (ffi.from_buffer("float[]", array) for array in (send, recv))
        count = recv.size if operation == "reduce_scatter" else send.size
        count = count // comm.size if operation == "alltoall" else count
        return Ready(partial(getattr(lib, operation), given, taken, count))

    return ready


def _load(mpi: str) -> Any:
    """The module of its calls, compiled where it has not been yet; ranks do it one by one."""
    if mpi != "impi":
        raise ContenderMissing(f"it works over Intel MPI, and not over {mpi}")
    if not Path(sys.prefix, "include/oneapi/ccl.hpp").is_file():
        raise ContenderMissing("oneccl is not installed")
    inputs = hashlib.sha256(f"{sys.prefix} {sys.version} {DECLARED}".encode() + SOURCE.read_bytes())
    folder = BUILD / "oneccl" / inputs.hexdigest()[:16]
    with scratch.locked(folder.parent):
        if not folder.is_dir():
            with scratch.folder(folder.parent, ".new-") as place:
                _compile(place / "made")
                scratch.settle(place / "made", folder)
    (path,) = folder.glob(f"{NAME}.*.so")
    spec = importlib.util.spec_from_file_location(NAME, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _compile(build: Path) -> None:
    """Compile the module into a folder.

    Raises:
        OSError: with the reason; the compiler's words went to the launch's log.
    """
    folder = Path(sys.prefix)
    ffi = FFI()
    ffi.cdef(DECLARED)
    ffi.set_source(
        NAME,
        SOURCE.read_text(encoding="utf-8"),
        source_extension=".cpp",
        include_dirs=[str(folder / "include")],
        library_dirs=[str(folder / "lib")],
        libraries=["ccl"],
        extra_compile_args=["-std=c++17"],
        extra_link_args=["-Wl,--disable-new-dtags", f"-Wl,-rpath,{folder / 'lib'}"],
    )
    try:
        ffi.compile(tmpdir=str(build))
    except Exception as error:  # setuptools' and cffi's own, without a common class
        raise OSError(f"oneccl's calls cannot be compiled: {error}") from error
