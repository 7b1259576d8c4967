"""Horovod's rendezvous is reached from this machine alone."""

from http.server import HTTPServer, SimpleHTTPRequestHandler
from socketserver import ThreadingMixIn

from experiments.programs.workloads.fusion.horovod_allreduce import bind_loopback


class OfHorovod(ThreadingMixIn, HTTPServer):
    """Its server has these bases, and is made for all addresses."""

    server_bind = bind_loopback


def test_a_server_for_all_addresses_listens_on_the_loopback() -> None:
    with OfHorovod(("", 0), SimpleHTTPRequestHandler) as server:
        assert server.socket.getsockname()[0] == "127.0.0.1"
        assert server.server_port == server.socket.getsockname()[1] > 0
