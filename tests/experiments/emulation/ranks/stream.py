"""A stream over TCP without an end: stream.py take, and on another host stream.py give HOST."""

import contextlib
import socket
import sys
import time

PORT = 5001
CHUNK = bytes(2**16)


def take() -> None:
    """Receive until the other side closes."""
    with socket.create_server(("", PORT)) as server:
        print("ready", flush=True)
        stream, _ = server.accept()
        with stream:
            while stream.recv(len(CHUNK)):
                pass


def give(host: str) -> None:
    """Send until this process is ended."""
    for _ in range(100):
        with (
            contextlib.suppress(ConnectionRefusedError),
            socket.create_connection((host, PORT)) as to,
        ):
            while True:
                to.sendall(CHUNK)
        time.sleep(0.05)


if __name__ == "__main__":
    take() if sys.argv[1] == "take" else give(sys.argv[2])
