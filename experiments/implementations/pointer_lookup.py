"""An Allreduce that first finds out what memory its buffer is in: by a lookup, or by a query.

A library that treats kinds of memory differently needs to know this in every call. The query is the
cheapest one: what allocated the memory, and the node of one page by get_mempolicy.
"""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mpi4py import MPI

from experiments.implementations.contender import Contender
from experiments.implementations.fusion_tensors import Way, ours, summed
from experiments.measure.operations import Array, Ready
from experiments.model.workloads import CACHE


def make(contender: str, comm: MPI.Intracomm, _folder: Path) -> Contender:
    """One of the two; collective."""
    library: Any = importlib.import_module("hbmcomm.training.fusion")
    memory_of = library.memory_of

    def ready(operation: str, send: Array, recv: Array) -> Ready:
        known: Callable[[Array], Any] = (
            library.BufferCache(memory_of).lookup if contender == CACHE else memory_of
        )
        own = ours(comm)
        buffer = own.zeros(recv.size, "float32")
        source = memory_of(buffer).source

        def call() -> None:
            if known(buffer).source == source:
                own.Allreduce(MPI.IN_PLACE, buffer)

        return summed(Way([buffer], call, close=own.Free), comm)

    return ready
