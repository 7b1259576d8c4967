"""Headers come out of a wheel on a server without the rest of the wheel."""

import http.server
import io
import re
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.model.errors import Missing
from experiments.provision import torch_headers

HEADER = "torch/include/c10/macros/Macros.h"


class Server(http.server.BaseHTTPRequestHandler):
    """Serves one file, in parts where asked."""

    content, gives_parts, sent = b"", True, 0

    def do_HEAD(self) -> None:
        """The length."""
        self._answer(200, len(self.content))

    def do_GET(self) -> None:
        """A part, or all."""
        part, status = self.content, 200
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if asked and self.gives_parts:
            part, status = part[int(asked[1]) : int(asked[2]) + 1], 206
        self._answer(status, len(part))
        type(self).sent += len(part)
        self.wfile.write(part)

    def _answer(self, status: int, length: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, *words: object) -> None:
        """Nothing."""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Server]]:
    """A server with a wheel: 2 MB of libraries before a header and after it."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as wheel:
        wheel.writestr("torch/lib/first.so", bytes(10**6))
        wheel.writestr(HEADER, "#pragma once")
        wheel.writestr("torch/include/sleef.h", "not needed")
        wheel.writestr("torch/lib/last.so", bytes(10**6))
    handler = type("Handler", (Server,), {"content": packed.getvalue()})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{running.server_address[1]}/torch.whl"
        monkeypatch.setattr(torch_headers, "_url", lambda version, arch: url)
        monkeypatch.setattr(torch_headers, "HEADERS", tmp_path / "headers")
        monkeypatch.setattr(torch_headers, "AT_ONCE", 1000)
        yield handler
        running.shutdown()


def test_the_headers_that_are_needed_come_alone_and_once(server: type[Server]) -> None:
    folder = torch_headers.ensure("2.13.0", "x86_64")
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files == [folder / "c10/macros/Macros.h"]
    assert files[0].read_text() == "#pragma once"
    assert 0 < server.sent < 10_000
    server.content = b""
    assert torch_headers.ensure("2.13.0", "x86_64") == folder


def test_a_server_that_gives_no_parts_leaves_nothing(server: type[Server], tmp_path: Path) -> None:
    server.gives_parts = False
    with pytest.raises(Missing, match="does not give parts of a file"):
        torch_headers.ensure("2.13.0", "x86_64")
    assert list((tmp_path / "headers").iterdir()) == []


def test_what_is_no_wheel_is_refused_with_its_address(server: type[Server], tmp_path: Path) -> None:
    server.content = b"not found" * 1000
    with pytest.raises(Missing, match=r"torch's headers cannot be read from http://127.*\.whl"):
        torch_headers.ensure("2.13.0", "x86_64")
    assert list((tmp_path / "headers").iterdir()) == []
