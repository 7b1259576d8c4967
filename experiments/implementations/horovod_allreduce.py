"""Gradients reduced by Horovod, where docs/systems/horovod.sh has built it for these ranks.

Its threads agree on tensors in every cycle, also while no tensor waits. So Horovod runs during its
own turns only: it is initialised before each and shut down after it, outside what is timed.
"""

import contextlib
import importlib
import os
from collections.abc import Iterator
from dataclasses import replace
from http.server import HTTPServer
from typing import Any

from mpi4py import MPI

from experiments.implementations.contender import Contender, ContenderMissing, on_all
from experiments.implementations.fusion_tensors import Way, lengths, named, private, summed
from experiments.measure import pools
from experiments.measure.operations import Array, Ready
from experiments.model.workloads import HOROVOD_GLOO, HOROVOD_MPI

THRESHOLD, CYCLE = "HOROVOD_FUSION_THRESHOLD", "HOROVOD_CYCLE_TIME"
SETTINGS = {
    HOROVOD_MPI: {THRESHOLD: str(2**20), CYCLE: "0.1"},
    HOROVOD_GLOO: {THRESHOLD: str(4 * 2**20), CYCLE: "0.1"},
}
"""The fastest on two cores; if left alone, 128 MiB and 1 ms."""
GIVEN = {name: os.environ[name] for name in (THRESHOLD, CYCLE) if name in os.environ}
"""Settings of the user's environment, which go first."""
CHOICES = ("HOROVOD_CONTROLLER", "HOROVOD_CPU_OPERATIONS")
"""What its ranks agree with, and what they reduce with."""
ADDRESS = "127.0.0.1"
LOOPBACK = {"HOROVOD_GLOO_IFACE": "lo", "HOROVOD_GLOO_RENDEZVOUS_ADDR": ADDRESS}


def make(contender: str, comm: MPI.Intracomm) -> Contender:
    """Horovod's Allreduce of every tensor, by name and in place; collective.

    Args:
        contender: one of HOROVODS.

    Raises:
        ContenderMissing: any rank has no torch or no Horovod, or gloo would have to leave the host.
    """
    own, gloo = comm.Dup(), contender == HOROVOD_GLOO
    host = own.Split_type(MPI.COMM_TYPE_SHARED)
    horovod = on_all(comm, lambda: _imported(gloo, host.size == own.size))
    import torch

    cpus = pools.of_all_ranks(comm)

    def ready(operation: str, send: Array, recv: Array) -> Ready:
        gradients = private(lengths(operation))
        tensors = [(torch.from_numpy(gradient), name) for name, gradient in named(gradients)]

        def wake() -> None:
            os.environ.update(SETTINGS[contender] | GIVEN)
            with pools.unpinned(cpus):
                if gloo:
                    with rendezvous(own):
                        horovod.init()
                else:
                    os.environ.update(dict.fromkeys(CHOICES, "mpi"))
                    horovod.init(own)

        def call() -> None:
            begun = [
                horovod.allreduce_async_(tensor, name=name, op=horovod.Sum)
                for tensor, name in tensors
            ]
            for handle in begun:
                horovod.synchronize(handle)

        way = Way(gradients, call, close=horovod.shutdown)
        return replace(summed(way, own), wake=wake, rest=horovod.shutdown)

    return ready


def _imported(gloo: bool, one_host: bool) -> Any:
    try:
        horovod = importlib.import_module("horovod.torch")
    except ImportError as error:
        raise ContenderMissing(f"{error}: docs/systems/horovod.sh builds Horovod") from error
    if gloo and not horovod.gloo_built():
        raise ContenderMissing("this Horovod has no gloo: docs/systems/horovod.sh builds one")
    if gloo and not one_host:
        raise ContenderMissing("horovod's gloo is measured on one host alone")
    return horovod


def bind_loopback(server: HTTPServer) -> None:
    """Bind a server of HTTP, which asks nobody for a secret, to its port on the loopback alone."""
    server.server_address = ADDRESS, server.server_address[1]
    HTTPServer.server_bind(server)


@contextlib.contextmanager
def rendezvous(comm: MPI.Intracomm) -> Iterator[None]:
    """What ranks of one host find each other by, for the time in which they do; collective.

    Horovod's launcher serves this as long as a program runs; here it would take CPUs from others.
    """
    hosts = importlib.import_module("horovod.runner.common.util.hosts")
    http_server = importlib.import_module("horovod.runner.http.http_server")
    rank, size, host, number = comm.rank, comm.size, "localhost", 0
    if rank == 0:
        http_server.RendezvousHTTPServer.server_bind = bind_loopback  # not all addresses
        server = http_server.RendezvousServer()
        number = server.start()
        server.init([hosts.SlotInfo(host, slot, slot, 0, size, size, 1) for slot in range(size)])
    places = {"RANK": rank, "SIZE": size, "LOCAL_RANK": rank, "LOCAL_SIZE": size}
    places |= {"CROSS_RANK": 0, "CROSS_SIZE": 1, "GLOO_RENDEZVOUS_PORT": comm.bcast(number)}
    os.environ.update({f"HOROVOD_{name}": str(value) for name, value in places.items()})
    os.environ.update(LOOPBACK | {"HOROVOD_HOSTNAME": host} | dict.fromkeys(CHOICES, "gloo"))
    yield
    comm.Barrier()
    if rank == 0:
        server.stop()
        server._httpd.server_close()  # which stop() leaves open
