import os
import platform
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from experiments.doctor import checks
from experiments.provision import engine as engine_provision
from experiments.provision.engine import EngineMissing


def test_an_engine_that_does_not_answer_is_named_with_its_address(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    assert engine_provision.version() is None
    with (
        pytest.raises(EngineMissing, match=r"DOCKER_HOST=unix:///nowhere.*unset DOCKER_HOST"),
        engine_provision.running(),
    ):
        pass


def test_no_address_ends_in_a_traceback_of_the_sdk(monkeypatch):
    for host in ("gibberish://", "tcp://127.0.0.1:1"):
        monkeypatch.setenv("DOCKER_HOST", host)
        with pytest.raises(EngineMissing), engine_provision.running():
            pass


class Dying(BaseHTTPRequestHandler):
    """An engine that ends once it has answered a ping."""

    def do_GET(self):
        if self.path.endswith("/_ping"):
            threading.Thread(target=self.server.shutdown).start()
        body = b'{"ApiVersion": "1.41"}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        """Say nothing."""


def test_an_engine_that_dies_between_two_questions_has_no_version(monkeypatch):
    with HTTPServer(("127.0.0.1", 0), Dying) as dying:
        monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{dying.server_port}")
        monkeypatch.setattr(engine_provision, "DEFAULT_TIMEOUT_SECONDS", 1)
        serving = threading.Thread(target=dying.serve_forever)
        serving.start()
        assert engine_provision.version() is None
        serving.join()


@pytest.fixture
def silent(monkeypatch):
    """silent(why): from now on, the engine that is installed does not answer an ordinary user."""
    monkeypatch.setattr(engine_provision.executables, "find", lambda name: f"/usr/sbin/{name}")
    monkeypatch.setattr(engine_provision.os, "geteuid", lambda: 1000)
    monkeypatch.delenv("DOCKER_HOST", raising=False)

    def because(why):
        monkeypatch.setattr(engine_provision, "_connect", lambda address="": (None, why))

    return because


def test_an_engine_that_does_not_run_is_started_as_a_service(monkeypatch, silent):
    silent("Connection refused")
    for systemd, remedy in (
        (True, "sudo systemctl enable --now docker"),
        (False, "sudo service docker start"),
    ):
        monkeypatch.setattr(engine_provision, "has_systemd", lambda systemd=systemd: systemd)
        finding = checks.container_engine()
        assert finding.ok is False
        assert finding.lack == "the container engine does not run; as root, ./inv starts one itself"
        assert finding.remedy == remedy


def test_a_socket_that_refuses_a_user_is_an_engines_only_where_one_listens(monkeypatch, silent):
    silent("Permission denied")
    for listens, lack in (
        (True, "the container engine runs, but this user"),
        (False, "the container engine does not"),
    ):
        monkeypatch.setattr(engine_provision.dockerd, "listens", lambda answer=listens: answer)
        assert lack in str(engine_provision.hindrance())


@pytest.mark.container
def test_an_engine_tells_what_it_runs_containers_with(engine):
    versions = engine_provision.parts(engine)
    assert versions["kernel"] == platform.release()
    assert versions["Engine"] == engine_provision.version_of(engine)
    assert "runc" in versions


@pytest.mark.container
def test_an_engine_that_runs_already_is_used_and_left_running(engine):
    with engine_provision.running() as client:
        assert client.ping()
    assert engine.ping()
    assert engine_provision.version() == engine.version()["Version"]


@pytest.mark.container
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to see the daemon's session")
def test_ctrl_c_in_this_session_does_not_reach_a_dockerd_of_ours(engine):
    pid = int(Path("/var/run/docker.pid").read_text())
    assert os.getsid(pid) != os.getsid(0)
