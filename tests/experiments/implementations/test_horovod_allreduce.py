"""Horovod's rendezvous is reached from this machine alone, and ends before the turn does."""

import os
import socket
import threading
from http.server import HTTPServer, SimpleHTTPRequestHandler
from socketserver import ThreadingMixIn
from types import SimpleNamespace
from typing import Any

import pytest
from mpi4py import MPI

from experiments.implementations import horovod_allreduce


class RendezvousHTTPServer(ThreadingMixIn, HTTPServer):
    """Stands in for Horovod's, which has these bases and listens at all addresses."""


class RendezvousServer:
    """Stands in for Horovod's."""

    def start(self) -> int:
        self._httpd = RendezvousHTTPServer(("", 0), SimpleHTTPRequestHandler)
        threading.Thread(target=self._httpd.serve_forever, daemon=True).start()
        addresses.append(self._httpd.socket.getsockname()[0])
        return int(self._httpd.server_port)

    def init(self, slots: list[tuple[Any, ...]]) -> None:
        assert slots == [("localhost", 0, 0, 0, 1, 1, 1)]

    def stop(self) -> None:
        self._httpd.shutdown()


MODULES = {
    "horovod.runner.common.util.hosts": SimpleNamespace(SlotInfo=lambda *slot: slot),
    "horovod.runner.http.http_server": SimpleNamespace(
        RendezvousHTTPServer=RendezvousHTTPServer, RendezvousServer=RendezvousServer
    ),
}
addresses: list[str] = []


def test_ranks_meet_on_the_loopback_and_the_server_is_gone_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(horovod_allreduce.importlib, "import_module", MODULES.__getitem__)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    with horovod_allreduce.rendezvous(MPI.COMM_SELF):
        port = int(os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"])
        assert os.environ["HOROVOD_GLOO_RENDEZVOUS_ADDR"] == "127.0.0.1"
        socket.create_connection(("127.0.0.1", port), timeout=10).close()
        assert addresses == ["127.0.0.1"]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=10)
