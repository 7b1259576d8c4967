"""A parameter server over gRPC as TensorFlow had it: one message per tensor to it, and one back.

It runs in the process of rank 0. Messages are the bytes of tensors, so nothing is serialised. Any
user of the machine can connect: a call must show a secret of its job.
"""

import hmac
import importlib
import queue
import secrets
import socket
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI

from experiments.machine.facts import kernel
from experiments.machine.links import NETWORK
from experiments.measure.operations import Array

SERVICE, METHOD = "gradients", "sum"
UNLIMITED = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
SECRET = "secret"
"""The key of the secret in the metadata of a call."""
SILENCE = 120.0  # seconds without a tensor from a rank, after which a stream ends with an error


class Sums:
    """The server's side: tensors by their order in a stream, each with the data received so far."""

    def __init__(self, ranks: int) -> None:
        self._ranks = ranks
        self._sums: dict[int, tuple[Array, int]] = {}
        self._served: dict[int, int] = {}
        self._changed = threading.Condition()

    def stream(self, requests: Iterator[bytes], _context: Any) -> Iterator[bytes]:
        """One rank's stream: the sum of each tensor, once it has come from all ranks."""
        for number, request in enumerate(requests):
            with self._changed:
                own = np.frombuffer(request, "float32")
                total, count = self._sums.get(number, (np.zeros_like(own), 0))
                total += own
                self._sums[number] = total, count + 1
                self._changed.notify_all()
                if not self._changed.wait_for(partial(self._is_whole, number), SILENCE):
                    raise TimeoutError(f"tensor {number} did not come from all ranks")
                reply = self._sums[number][0].tobytes()
                self._served[number] = self._served.get(number, 0) + 1
                if self._served[number] == self._ranks:
                    del self._sums[number], self._served[number]
            yield reply

    def _is_whole(self, number: int) -> bool:
        return self._sums[number][1] == self._ranks


def guarded(secret: str, service: str, method: str, handler: Any) -> Any:
    """A handler of gRPC for one method, and for calls with the secret alone.

    Others are refused before a thread of the server is theirs.
    """
    grpc: Any = importlib.import_module("grpc")

    class Guarded(grpc.GenericRpcHandler):  # type: ignore[misc]
        def service(self, call: Any) -> Any:
            shown = dict(call.invocation_metadata).get(SECRET, "")
            known = hmac.compare_digest(str(shown).encode(), secret.encode())
            return handler if known and call.method == f"/{service}/{method}" else None

    return Guarded()


def ports(server: Any, addresses: Collection[str]) -> dict[str, int]:
    """Have a server listen at addresses of this host, and at no other; the port at each.

    Raises:
        SystemExit: one is none of this host: another machine forwards to it (NAT).
    """
    bound_ports = {}
    for address in addresses:
        try:
            bound_ports[address] = server.add_insecure_port(f"{address}:0")
        except RuntimeError as error:
            raise SystemExit(
                f"{socket.gethostname()} is {address} to a rank on another host, and cannot listen "
                f"there ({error}): let the name lead to an address of its own on all hosts"
            ) from error
    return bound_ports


class Client:
    """One rank's stream to the server; making and closing it is collective.

    `send` hands a tensor over; `receive` puts the sums of all that were sent into them.
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        grpc: Any = importlib.import_module("grpc")
        self._comm, self._server = comm, None
        secret: str = comm.bcast(secrets.token_hex())
        one_network = len(set(comm.allgather((kernel(), NETWORK.readlink())))) == 1
        server_host = comm.bcast(socket.gethostname())
        address = "127.0.0.1" if one_network else socket.gethostbyname(server_host)
        addresses, bound_ports = comm.gather(address), dict[str, int]()
        if comm.rank == 0:
            self._server = grpc.server(ThreadPoolExecutor(comm.size), options=UNLIMITED)
            call = grpc.stream_stream_rpc_method_handler(Sums(comm.size).stream)
            self._server.add_generic_rpc_handlers((guarded(secret, SERVICE, METHOD, call),))
            bound_ports = ports(self._server, set(addresses or ()))
            self._server.start()
        place = f"{address}:{comm.bcast(bound_ports)[address]}"
        self._channel = grpc.insecure_channel(place, options=UNLIMITED)
        self._given: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        feed: Callable[[], bytes | None] = self._given.get
        stream = self._channel.stream_stream(f"/{SERVICE}/{METHOD}")
        self._sums = stream(iter(feed, None), metadata=((SECRET, secret),))

    def send(self, tensor: Array) -> None:
        """Hand a tensor over; it is copied."""
        self._given.put(tensor.tobytes())

    def receive(self, tensors: Sequence[Array]) -> None:
        """The sums of the tensors that were sent since the last time, in their order."""
        for tensor in tensors:
            tensor[:] = np.frombuffer(next(self._sums), "float32")

    def close(self) -> None:
        """End the stream, then the server."""
        self._given.put(None)
        for _ in self._sums:
            pass
        self._channel.close()
        self._comm.Barrier()
        if self._server is not None:
            self._server.stop(None).wait()
