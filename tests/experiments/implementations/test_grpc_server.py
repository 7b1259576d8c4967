"""Where the servers of gRPC listen, and that calls need the secret of their job."""

import importlib.util
import subprocess
import sys

import pytest

PROGRAM = """
import socket
from concurrent.futures import ThreadPoolExecutor
import grpc
from experiments.implementations.grpc_server import SECRET, guarded, ports
server = grpc.server(ThreadPoolExecutor(1))
echo = grpc.unary_unary_rpc_method_handler(lambda request, _context: request)
server.add_generic_rpc_handlers((guarded("the secret", "tests", "echo", echo),))
found = ports(server, ["127.0.0.1", "127.0.0.3"])
port = found["127.0.0.1"]
server.start()
for address in (*found, "127.0.0.2"):
    for number in found.values():
        try:
            socket.create_connection((address, number), 5).close()
            print(address)
        except ConnectionRefusedError:
            pass
try:
    ports(server, ["192.0.2.1"])
except SystemExit as error:
    print("none of" if "is 192.0.2.1 to a rank on another host" in str(error) else error)
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


@pytest.fixture(scope="module")
def printed() -> list[str]:
    if importlib.util.find_spec("grpc") is None:
        pytest.skip("grpcio is not installed: pip install grpcio")
    words = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.splitlines()


def test_a_server_listens_at_addresses_of_its_own_that_its_clients_know(printed: list[str]) -> None:
    assert printed[:3] == ["127.0.0.1", "127.0.0.3", "none of"]


def test_whoever_lacks_the_secret_is_refused_and_holds_no_thread(printed: list[str]) -> None:
    assert printed[3:] == ["UNIMPLEMENTED"] * 6 + ["hello"]
