"""Operators of torch as contenders: what programs call where process groups would take too long.

This library's, and those that vLLM and DeepSpeed have for themselves, where they are installed: of
these the compiled part alone is loaded or built, and no Python of theirs is run. Their files in
/dev/shm are removed as soon as all ranks have opened them.
"""

import importlib.util
import os
import sys
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from mpi4py import MPI

from experiments.implementations.contender import (
    Contender,
    ContenderMissing,
    on_all,
    reducing,
    tensors,
)
from experiments.measure.operations import Array, Ready
from experiments.measure.timing import Call
from experiments.model.checkout import BUILD
from experiments.processes import scratch
from experiments.schedule.footprint import ROOT

SHARED = Path("/dev/shm")
VLLM_RANKS = (2, 3, 4, 8)


def own(group: int) -> Contender:
    """torch.ops.hbmcomm over the group with this handle."""
    import torch

    ops = torch.ops.hbmcomm

    def calls(given: Any, taken: Any) -> Mapping[str, Call]:
        reduce = partial(ops.all_reduce_, taken, "sum", group)
        return {
            "bcast": partial(ops.broadcast_, given, ROOT, group),
            "allreduce": reducing(given, taken, reduce),
            "allgather": partial(ops.all_gather_into_, taken, given, group),
            "reduce_scatter": partial(ops.reduce_scatter_into_, taken, given, "sum", group),
            "alltoall": partial(ops.all_to_all_into_, taken, given, group),
        }

    return _contender(calls)


def vllm(comm: MPI.Intracomm) -> Contender:
    """vLLM's for CPUs; a collective.

    Raises:
        ContenderMissing: it is not installed, cannot be loaded, or does not serve so many ranks.
    """
    ops = on_all(comm, partial(_load_vllm, comm.size))
    name: str = comm.bcast(f"hbmcomm-{uuid.uuid4().hex}")
    group = ops.init_shm_manager(name, comm.size, comm.rank, 1)
    comm.Barrier()
    ops.join_shm_manager(group, name)
    _forget(comm, name)

    def calls(given: Any, taken: Any) -> Mapping[str, Call]:
        rows = list(taken.chunk(comm.size)) if comm.rank == ROOT else None
        return {
            "gather": partial(ops.shm_gather, group, given, rows, ROOT),
            "allreduce": reducing(given, taken, partial(ops.shm_allreduce, group, taken)),
            "allgather": partial(ops.shm_all_gather, group, given, taken),
        }

    return _contender(calls)


def deepspeed(comm: MPI.Intracomm) -> Contender:
    """DeepSpeed's for CPUs; a collective. It is compiled first, where that has not been done.

    Raises:
        ContenderMissing: it is not installed, or cannot be compiled.
    """
    import torch

    built = on_all(comm, _build_deepspeed)
    place: str = comm.bcast(uuid.uuid4().hex)  # in place of the host's name in file names
    os.environ |= {"LOCAL_SIZE": str(comm.size), "MASTER_ADDR": place, "MASTER_PORT": "0"}
    built.initialize(comm.size, comm.rank)
    _forget(comm, f"deepspeed_allreduce_buffer_{os.getuid()}_{place}_0")
    act = torch.ops.deepspeed.inference_all_reduce_

    def calls(given: Any, taken: Any) -> Mapping[str, Call]:
        return {"allreduce": reducing(given, taken, partial(act, taken))}

    return _contender(calls)


def _contender(calls: Callable[[Any, Any], Mapping[str, Call]]) -> Contender:
    def ready(operation: str, send: Array, recv: Array) -> Ready | None:
        call = calls(*tensors(send, recv)).get(operation)
        return None if call is None else Ready(call)

    return ready


def _folder(package: str) -> Path:
    """Where a package is, which is not imported: that takes seconds, and packages of its own."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ContenderMissing(f"{package} is not installed")
    return Path(spec.origin).parent


def _load_vllm(ranks: int) -> Any:
    """The operators of the library that vLLM itself takes for this CPU."""
    if ranks not in VLLM_RANKS:
        counts = ", ".join(map(str, VLLM_RANKS))
        raise ContenderMissing(f"it serves {counts} ranks, and not {ranks}")
    folder = _folder("vllm")
    import torch

    can = torch.cpu.get_capabilities()
    suffixes = {"avx512_bf16": "", "avx512_f": "_AVX512", "avx2": "_AVX2"}
    suffix = next((suffixes[name] for name in suffixes if can.get(name)), "")
    torch.ops.load_library(str(folder / f"_C{suffix}.abi3.so"))
    if not hasattr(torch.ops._C, "init_shm_manager"):
        raise ContenderMissing(f"vLLM in {folder} has no operators over shared memory")
    return torch.ops._C


def _build_deepspeed() -> Any:
    """The module of its sources, as its own builder compiles them; ranks do it one by one."""
    from torch.utils import cpp_extension

    sources = _folder("deepspeed") / "ops/csrc/cpu"
    build = BUILD / "deepspeed" / Path(sys.prefix).name
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # for ninja
    with scratch.locked(build):
        (build / "lock").unlink(missing_ok=True)  # of a build that was killed
        return cpp_extension.load(
            "deepspeed_shm_comm",
            [str(sources / "comm" / name) for name in ("shm_interface.cpp", "shm.cpp")],
            extra_cflags=["-O2", "-fopenmp"],
            extra_include_paths=[str(sources / "includes")],
            build_directory=str(build),
        )


def _forget(comm: MPI.Intracomm, name: str) -> None:
    """Remove the files of all ranks, once all have opened them."""
    comm.Barrier()
    (SHARED / f"{name}_{comm.rank}").unlink(missing_ok=True)
