"""Lines over gRPC: as it comes, with a protobuf message of bytes, and tuned for tensors.

Rank 1 has the server; its main thread reads what the server's threads have queued. Rank 0 sleeps
until its last tensor has come, so that gRPC's threads have the CPUs.
"""

import importlib
import os
import queue
import secrets
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from mpi4py import MPI

from experiments.implementations.grpc_server import SECRET, UNLIMITED, guarded
from experiments.implementations.push_lines import Line, zeros
from experiments.measure.operations import Array
from experiments.measure.pools import of_all_ranks, unpinned

_SERVICE, _PUSH = "hbmcomm.Tensors", "Push"
_METHOD = f"/{_SERVICE}/{_PUSH}"
_TUNED = [
    *UNLIMITED,
    ("grpc.http2.max_frame_size", 2**24 - 1),
    ("grpc.http2.write_buffer_size", 2**26),
    ("grpc.http2.lookahead_bytes", 2**26),
    ("grpc.http2.bdp_probe", 0),
]
_ACKNOWLEDGED = b""
_TENSOR = """
name: "tensor.proto" package: "hbmcomm" syntax: "proto3"
message_type {
  name: "Tensor"
  field { name: "dtype" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "shape" number: 2 type: TYPE_INT64 label: LABEL_REPEATED }
  field { name: "data" number: 3 type: TYPE_BYTES label: LABEL_OPTIONAL }
}
"""
"""message Tensor { string dtype = 1; repeated int64 shape = 2; bytes data = 3; } by protoc."""


@cache
def _tensor_class() -> Any:
    """The class of the message."""
    text_format: Any = importlib.import_module("google.protobuf.text_format")
    descriptors: Any = importlib.import_module("google.protobuf.descriptor_pb2")
    pools: Any = importlib.import_module("google.protobuf.descriptor_pool")
    factory: Any = importlib.import_module("google.protobuf.message_factory")
    pool = pools.DescriptorPool()
    pool.Add(text_format.Parse(_TENSOR, descriptors.FileDescriptorProto()))
    return factory.GetMessageClass(pool.FindMessageTypeByName("hbmcomm.Tensor"))


class _Queued(Line):
    """A server on rank 1, whose threads queue bytes for the consumer, and a channel on rank 0."""

    def __init__(self, comm: MPI.Intracomm, sizes: Sequence[int]) -> None:
        super().__init__(zeros(sizes) if comm.rank == 0 else [])
        self._came: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._comm = comm
        self._grpc: Any = importlib.import_module("grpc")
        self._channel: Any = None
        self._server: Any = None
        self._secret: str = comm.bcast(secrets.token_hex())
        self._shown = ((SECRET, self._secret),)

    def _open(self, handler: Any, address: str, options: Sequence[tuple[str, int]]) -> None:
        """Start and connect, on both ranks together; `address`: with port 0 any free port."""
        os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
        grpc, comm = self._grpc, self._comm
        with unpinned(of_all_ranks(comm)):
            if comm.rank == 1:
                self._server = grpc.server(ThreadPoolExecutor(2), options=options)
                handlers = (guarded(self._secret, _SERVICE, _PUSH, handler),)
                self._server.add_generic_rpc_handlers(handlers)
                port = self._server.add_insecure_port(address)
                if address.endswith(":0"):
                    address = f"{address[:-1]}{port}"
                self._server.start()
            address = comm.bcast(address, 1)
            if comm.rank == 0:
                self._channel = grpc.insecure_channel(address, options)
                grpc.channel_ready_future(self._channel).result(timeout=30)

    def receive(self, number: int) -> Array:
        tensor: Array = np.frombuffer(self._came.get(), "float32")
        return tensor

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()
        self._comm.Barrier()
        if self._server is not None:
            self._server.stop(None).wait()
        self._comm.Free()


class RpcLine(_Queued):
    """A unary call for each tensor: protobuf bytes over TCP."""

    def __init__(self, comm: MPI.Intracomm, sizes: Sequence[int]) -> None:
        super().__init__(comm, sizes)
        self._class = _tensor_class()
        handler = self._grpc.unary_unary_rpc_method_handler(self._take, self._parsed)
        self._open(handler, "127.0.0.1:0", UNLIMITED)
        if self._channel is not None:
            self._call = self._channel.unary_unary(_METHOD, self._serialised)

    def send(self, number: int) -> None:
        tensor = self._tensors[number]
        data = self._counted(tensor.tobytes())
        message = self._class(dtype=tensor.dtype.str, shape=tensor.shape, data=data)
        self.copied += len(data)  # a message keeps its own copy
        self._call(message, metadata=self._shown, wait_for_ready=True)

    def _serialised(self, message: Any) -> bytes:
        return self._counted(message.SerializeToString())

    def _parsed(self, data: bytes) -> Any:
        self.copied += len(data)
        return self._class.FromString(data)

    def _take(self, message: Any, _context: Any) -> bytes:
        self._came.put(self._counted(message.data))
        return _ACKNOWLEDGED


class TunedRpcLine(_Queued):
    """One stream for all tensors, without a serialiser, over a Unix socket, limits raised."""

    def __init__(self, comm: MPI.Intracomm, sizes: Sequence[int]) -> None:
        super().__init__(comm, sizes)
        self._going: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        handler = self._grpc.stream_stream_rpc_method_handler(self._take)
        name = comm.bcast(f"unix-abstract:hbmcomm.{secrets.token_hex(8)}")
        self._open(handler, name, _TUNED)
        if self._channel is not None:
            requests: Iterator[bytes] = iter(self._going.get, None)
            push = self._channel.stream_stream(_METHOD)
            self._acknowledged = push(requests, metadata=self._shown, wait_for_ready=True)

    def send(self, number: int) -> None:
        self._going.put(self._counted(self._tensors[number].tobytes()))

    def finish(self) -> None:
        for _ in self._tensors:
            next(self._acknowledged)

    def close(self) -> None:
        self._going.put(None)
        super().close()

    def _take(self, requests: Iterator[bytes], _context: Any) -> Iterator[bytes]:
        for data in requests:
            self._came.put(data)
            yield _ACKNOWLEDGED
