"""The program in place of ssh understands launchers, and ends what it started."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from docker.models.containers import Container

from experiments.environments import enter
from experiments.processes import tracking
from experiments.processes.executables import captured
from experiments.provision.image import Image
from tests.awaiting import wait_for

VARIABLES = enter.variables(
    {"10.0.0.2": "one", "10.0.0.3": "two"},
    {Path("/checkout/.venv"): Path("/opt/hbmcomm"), Path("/enter.sh"): Path("/bin/true")},
)


def test_the_options_of_ssh_are_left_out() -> None:
    for options in ((), ("-x",), ("-q", "-x")):
        words = [*options, "10.0.0.3", "proxy", "--port", "1"]
        assert enter.entry(words, VARIABLES) == ("two", "proxy --port 1"), options


def test_paths_of_this_machine_become_those_of_the_container() -> None:
    line = "P=/checkout/.venv;export P;/checkout/.venv/bin/prted --agent /enter.sh"
    assert enter.entry(["10.0.0.2", line], VARIABLES) == (
        "one",
        "P=/opt/hbmcomm;export P;/opt/hbmcomm/bin/prted --agent /bin/true",
    )


def test_a_host_without_a_place_is_named() -> None:
    with pytest.raises(ValueError, match=r"10\.0\.0\.9.*10\.0\.0\.2"):
        enter.entry(["10.0.0.9", "true"], VARIABLES)


def test_nothing_is_imported_from_the_folder_that_it_is_started_in(tmp_path: Path) -> None:
    """A launcher starts it in /tmp, where any user can put a package of the project's name."""
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "__init__.py").write_text("print('another user was here')")
    words = [enter.LAUNCHER, "10.0.0.9", "true"]
    done = captured(words, cwd=tmp_path, env=os.environ | VARIABLES)
    assert done.stdout == "" and "10.0.0.9" in done.stderr


@pytest.fixture
def waiting(engine: docker.DockerClient, image: Image) -> Iterator[Container]:
    """A container that waits for ranks."""
    container = engine.containers.run(image.id, ["sleep", "infinity"], detach=True)
    yield container
    container.remove(force=True)


def entered(container: str, line: str) -> "subprocess.Popen[str]":
    shown = enter.variables({"10.0.0.2": container}, {})
    return subprocess.Popen(
        [enter.LAUNCHER, "-x", "10.0.0.2", line],
        env=os.environ | shown | {tracking.MARK: "test-enter"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.container
def test_output_and_exit_code_come_back(waiting: Container) -> None:
    process = entered(str(waiting.id), "echo out; echo err >&2; exit 7")
    assert process.communicate(timeout=60) == ("out\n", "err\n")
    assert process.returncode == 7


@pytest.mark.container
def test_what_runs_in_the_container_ends_with_its_launcher(waiting: Container) -> None:
    process = entered(str(waiting.id), "sleep 600 & echo ready; sleep 601")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert len(waiting.top()["Processes"]) > 1
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == enter.ENDED + signal.SIGTERM
    wait_for(lambda: len(waiting.top()["Processes"]) == 1, "end of what runs there", 10)
    assert [line[-1] for line in waiting.top()["Processes"]] == ["sleep infinity"]
