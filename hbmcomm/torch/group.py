"""Creates a process group: ranks of a host share memory as those of a Communicator do, without MPI.

Decides by the ranks' hosts what a group is made of.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import warnings
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from hbmcomm.errors import ArenaUnavailable, HbmcommError
from hbmcomm.hierarchical.grouping import Layout
from hbmcomm.memory import consensus, cpu_location, procfs
from hbmcomm.memory.arena_creation import MOST_RANKS, create_arena
from hbmcomm.memory.consensus import Allgather
from hbmcomm.memory.kinds import Kind, default_kind, resolve
from hbmcomm.memory.pool import Pool
from hbmcomm.torch.rendezvous import Exchange
from hbmcomm.torch.shim_loading import address, boxed, shim
from hbmcomm.transports.native import Core
from hbmcomm.transports.opening import Opened, open_core, open_on_all

VARIABLE = "HBMCOMM_KIND"
"""The kind of memory of tensors that a group allocates."""

EXIT_TIMEOUT = timedelta(seconds=10)
"""How long a rank with an error waits for the others."""

_log = logging.getLogger("hbmcomm.torch")

_pools: set[Pool] = set()
"""Tensors in them may outlive their group, and Python."""


def create(options: Any, _backend_options: Any) -> distributed.Backend:
    """A backend for the ranks of a group; collective.

    Ranks of one host share memory. Where ranks are on several hosts, gloo connects these. The group
    is one of torch's gloo, with a warning, where ranks of one host cannot share memory.

    Args:
        options: torch.distributed's own for backends with extended_api.

    Raises:
        HbmcommError, ValueError: On every rank: the first such error of any rank.
    """
    try:
        return _create(options.store, options.group_rank, options.group_size, options.timeout)
    except (HbmcommError, ValueError):
        _wait_for_others(options.store, options.group_rank, options.group_size)
        raise


def _create(
    store: distributed.Store, rank: int, size: int, timeout: timedelta
) -> distributed.Backend:
    gather = Exchange(distributed.PrefixStore("hbm", store), rank, size, timeout)
    prepared = consensus.run_on_all(gather, _prepared)
    hosts, nodes = _by_host([boot for boot, _ in prepared]), [node for _, node in prepared]
    leaders = min(len({nodes[member] for member in ranks}) for ranks in hosts)
    layout = Layout([*map(tuple, hosts)], rank, leaders, dict(enumerate(nodes)))
    most, own = max(map(len, hosts)), next(ranks for ranks in hosts if rank in ranks)
    inside = gather
    if len(hosts) > 1:
        on_host = distributed.PrefixStore(f"host/{own[0]}", store)
        inside = Exchange(on_host, own.index(rank), len(own), timeout)
    try:
        if most > MOST_RANKS:
            raise ArenaUnavailable(f"{most} ranks are on one host, more than {MOST_RANKS}")
        core, arena = _share_memory(gather, inside, rank, own)
    except ArenaUnavailable as error:
        if rank == 0:
            warnings.warn(f"hbm: {error}: this process group is one of gloo", stacklevel=2)
        group = _gloo(store, rank, size, timeout)
        gather.forget()
        return group
    _pools.add(arena.pool)
    between = f", and gloo between {len(hosts)} hosts" if len(hosts) > 1 else ""
    if rank == 0:
        ranks = " + ".join(str(len(host)) for host in hosts)
        _log.info("hbm: a process group of %s ranks by shared memory%s", ranks, between)
    networks, names = zip(*gather((_network(), secrets.token_hex(8))), strict=True)
    loopback = len(set(networks)) == 1  # containers of one host may have networks apart
    prefix = f"companion/{names[0]}"  # of this group alone, as its keys stay
    companion = _companion(distributed.PrefixStore(prefix, store), rank, size, timeout, loopback)
    gather.forget()  # each rank has connected to all, and has their values
    inside.forget()
    holder = distributed.ProcessGroup(rank, size)
    explain, close = partial(_explain, core), core.close
    shim().make_group(
        holder.boxed(),
        boxed(companion),
        rank,
        size,
        milliseconds=timeout // timedelta(milliseconds=1),
        comm=address(core.handle),
        arrays=address(arena.heap),
        base=arena.pool.address,
        bytes=arena.pool.nbytes,
        explain=id(explain),  # it takes a reference
        close=id(close),
        host_of=[layout.host_of[member] for member in range(size)],
        leading=list(layout.leading),
        leaders=layout.leaders,
    )
    made: distributed.Backend = holder._get_backend(torch.device("cpu"))
    return made


def _wait_for_others(store: distributed.Store, rank: int, size: int) -> None:
    """After an error on every rank: rank 0 waits until the others have read it.

    Its process may serve the store, and may end because of the error.
    """
    read = distributed.PrefixStore("hbm-failed", store)
    with contextlib.suppress(RuntimeError):
        if rank:
            read.set(str(rank), b"")
        else:
            read.wait([str(member) for member in range(1, size)], EXIT_TIMEOUT)


def _prepared() -> tuple[int, int]:
    """A number of this host, and the NUMA node of this rank.

    Once the C++ part is loaded: a rank without it must not be awaited.
    """
    shim()
    return procfs.boot(Path("/proc")), cpu_location.of_this_process().node


def _network() -> tuple[int, str]:
    """A number of this host, and the network that this process has on it."""
    return procfs.boot(Path("/proc")), str(Path("/proc/self/ns/net").readlink())


def _by_host(numbers: Sequence[int]) -> list[list[int]]:
    """The ranks of each host, from the number of each rank's host."""
    hosts: dict[int, list[int]] = {}
    for rank, number in enumerate(numbers):
        hosts.setdefault(number, []).append(rank)
    return list(hosts.values())


def _share_memory(gather: Allgather, inside: Allgather, rank: int, own: list[int]) -> Opened:
    """What the ranks of this one's host share; collective over the ranks of all hosts.

    Args:
        gather: Among the ranks of all hosts.
        inside: Among those of this host, `own`; `gather` itself where there is one host.

    Raises:
        HbmcommError, ValueError: On every rank: the first such error of any rank.
    """
    make = partial(open_core, partial(create_arena, kind=_kind), inside, own.index(rank), own)
    return make() if inside is gather else open_on_all(gather, make)


def _kind() -> Kind:
    return resolve(os.environ.get(VARIABLE) or default_kind(), None)


def _explain(core: Core, status: int) -> str:
    """Why a call failed; an interrupt by a signal's handler is raised."""
    error = core.error(status)
    if not isinstance(error, Exception):
        raise error
    return str(error)


def _gloo(store: distributed.Store, rank: int, size: int, timeout: Any) -> distributed.Backend:
    group = distributed.ProcessGroupGloo(store, rank, size, timeout)
    group._set_sequence_number_for_group()
    return group


def _companion(
    store: distributed.Store, rank: int, size: int, timeout: Any, loopback: bool
) -> distributed.Backend:
    """A group of gloo beside the core: between networks by torch's choice of an interface.

    Connections by loopback are made at once: a lazy one blocks irecv, and a monitored barrier past
    its timeout, until the other rank makes a call.
    """
    if not loopback:
        return distributed.ProcessGroupGloo(store, rank, size, timeout)
    options = distributed.ProcessGroupGloo._Options()
    options._timeout = timeout
    options._threads = 1
    options._devices = [
        distributed.ProcessGroupGloo.create_device(hostname="127.0.0.1", lazy_init=False)
    ]
    return distributed.ProcessGroupGloo(store, rank, size, options)
