"""Calls of the servers of gRPC need the secret of their job."""

import importlib.util
import subprocess
import sys

import pytest

PROGRAM = """
from concurrent.futures import ThreadPoolExecutor
import grpc
from experiments.programs.workloads.fusion.grpc_server import SECRET, guarded
server = grpc.server(ThreadPoolExecutor(1))
echo = grpc.unary_unary_rpc_method_handler(lambda request, _context: request)
server.add_generic_rpc_handlers((guarded("the secret", "tests", "echo", echo),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
channel = grpc.insecure_channel(f"127.0.0.1:{port}")
half = channel.stream_stream("/tests/echo")
def never():
    import time
    time.sleep(3)
    yield b""
for shown in ((), ((SECRET, "a guess"),)):
    waiting = [half(never(), metadata=shown, timeout=20) for _ in range(3)]
    for each in waiting:
        try:
            next(each)
        except grpc.RpcError as error:
            print(error.code().name)
call = channel.unary_unary("/tests/echo")
print(call(b"hello", metadata=((SECRET, "the secret"),), timeout=10).decode())
server.stop(None)
"""


def test_whoever_lacks_the_secret_is_refused_and_holds_no_thread() -> None:
    if importlib.util.find_spec("grpc") is None:
        pytest.skip("grpcio is not installed: pip install grpcio")
    words = [sys.executable, "-c", PROGRAM]
    found = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout.split() == ["UNIMPLEMENTED"] * 6 + ["hello"]
