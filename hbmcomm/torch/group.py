"""Creates a process group: ranks share memory as those of a Communicator do, without MPI."""

from __future__ import annotations

import os
import warnings
from functools import partial
from pathlib import Path
from typing import Any

from torch import distributed

from hbmcomm.collectives.core.native import Core, Setting, lib, setting
from hbmcomm.errors import ArenaUnavailable
from hbmcomm.memory.policy.kinds import Kind, default_kind, resolve
from hbmcomm.memory.shared import consensus
from hbmcomm.memory.shared.arena import Arena
from hbmcomm.memory.shared.arena_creation import MOST_RANKS, create_arena
from hbmcomm.memory.shared.consensus import Allgather
from hbmcomm.memory.shared.pool import Pool
from hbmcomm.memory.topology import procfs
from hbmcomm.torch.rendezvous import allgather
from hbmcomm.torch.shim_loading import address, shim

VARIABLE = "HBMCOMM_KIND"
"""The kind of memory of tensors that a group allocates."""

_pools: set[Pool] = set()
"""Tensors in them may outlive their group, and Python."""


def create(options: Any, _backend_options: Any) -> distributed.Backend:
    """A backend for the ranks of a group; collective.

    Ranks that cannot share memory, as those on several hosts, get torch's gloo, with a warning.

    Args:
        options: torch.distributed's own for backends with extended_api.

    Raises:
        HbmcommError, ValueError: On every rank: the first such error of any rank.
    """
    store, rank, size, timeout = (
        options.store,
        options.group_rank,
        options.group_size,
        options.timeout,
    )
    gather = allgather(distributed.PrefixStore("hbm", store), rank, size, timeout)
    hosts = set(consensus.run_on_all(gather, _prepared))
    if len(hosts) > 1 or size > MOST_RANKS:
        return _gloo(store, rank, size, timeout, f"its {size} ranks are on {len(hosts)} hosts")
    try:
        core, arena = _share_memory(gather, rank, size)
    except ArenaUnavailable as error:
        return _gloo(store, rank, size, timeout, str(error))
    _pools.add(arena.pool)
    companion = distributed.ProcessGroupGloo(
        distributed.PrefixStore("companion", store), rank, size, _on_this_host(timeout)
    )
    found: distributed.Backend = shim().make_group(
        rank,
        size,
        timeout,
        comm=address(core.handle),
        arrays=address(arena.heap),
        base=arena.pool.address,
        bytes=arena.pool.nbytes,
        explain=partial(_explain, core),
        close=core.close,
        companion=companion,
    )
    return found


def _prepared() -> int:
    """A number of this host, once the C++ part is loaded: a rank without it must not be awaited."""
    shim()
    return procfs.boot(Path("/proc"))


def _share_memory(gather: Allgather, rank: int, size: int) -> tuple[Core, Arena]:
    states: list[Core] = []

    def begin(arena: Arena, settings: list[Setting]) -> None:
        states[:] = [Core(arena, rank, settings)]

    control = int(lib.hbm_control_bytes())
    arena, _ = create_arena(gather, rank, size, _kind, control, extra=setting, begin=begin)
    (core,) = states
    return core, arena


def _kind() -> Kind:
    return resolve(os.environ.get(VARIABLE) or default_kind(), None)


def _explain(core: Core, status: int) -> str:
    """Why a call failed; an interrupt by a signal's handler is raised."""
    error = core.error(status)
    if not isinstance(error, Exception):
        raise error
    return str(error)


def _gloo(
    store: distributed.Store, rank: int, size: int, timeout: Any, why: str
) -> distributed.Backend:
    if rank == 0:
        warnings.warn(f"hbm: {why}: this process group is one of gloo", stacklevel=2)
    found = distributed.ProcessGroupGloo(store, rank, size, timeout)
    found._set_sequence_number_for_group()
    return found


def _on_this_host(timeout: Any) -> Any:
    """Options of gloo: connections within this host.

    They are made at once: a lazy one blocks irecv, and a monitored barrier past its timeout, until
    the other rank makes a call.
    """
    options = distributed.ProcessGroupGloo._Options()
    options._timeout = timeout
    options._threads = 1
    options._devices = [
        distributed.ProcessGroupGloo.create_device(hostname="127.0.0.1", lazy_init=False)
    ]
    return options
