"""What a campaign of a user's program says, keeps and ends when the disk or an engine fails."""

import contextlib
import io
import os
import shlex
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from experiments.environments.docker import LABEL
from experiments.model.checkout import ROOT
from experiments.model.errors import Missing
from experiments.processes import scratch, tracking
from experiments.provision import dockerd, engine, gate_build, podman
from experiments.results.program_runs import read_runs
from tests.awaiting import wait_for
from tests.experiments.running import running

pytestmark = pytest.mark.alone

INV = (sys.executable, "-P", "-m", "invoke", "--search-root", str(ROOT))
WITH_SHORT = """
import sys
from pathlib import Path
from experiments.processes import scratch
from invoke.main import program
scratch.SHORT = Path(sys.argv.pop(1))
program.run()
"""
"""The command of a user, with another folder for what runs write."""
PARTS = "====="
"""Between what commands print."""
STATIC = """
#include <stdio.h>
int main(void) {
    volatile double sum = 0;
    for (long step = 1;; step++) {
        for (long i = 0; i < 1000000; i++) sum += i;
        printf("step %ld\\n", step);
        fflush(stdout);
    }
}
"""
"""Without an end: as the first process of a container it ignores SIGTERM."""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder, which is the current one."""
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    gate_build.ensure()
    return tmp_path / "mine"


@pytest.fixture
def disk() -> Iterator[Path]:
    """A folder of a short name, which on_small_disk() makes a small file system."""
    with scratch.folder(scratch.SHORT, "hbmcomm-test-") as folder:
        yield folder


def on_small_disk(disk: Path, size: str, *lines: str) -> list[str]:
    """What each command prints, with a small file system that is theirs alone."""
    if os.getuid() != 0:
        pytest.skip("mounting a file system of its own needs root")
    small = f"mount -t tmpfs -o size={size},mode=755 tmpfs {disk} || exit"
    script = f"\necho {PARTS}\n".join((small, *lines))
    words = ["unshare", "--mount", "--propagation=private", "sh", "-c", script]
    ended = subprocess.run(words, check=False, capture_output=True, text=True, timeout=280)
    _, *parts = ended.stdout.split(f"{PARTS}\n")
    if len(parts) != len(lines):
        pytest.skip("this sandbox mounts no tmpfs")
    assert "Traceback" not in ended.stdout, ended.stdout
    return parts


def line(*words: object, short: Path | None = None) -> str:
    """A command of a user, with another folder for what runs write; its exit code is printed."""
    inv = (*INV[:2], "-c", WITH_SHORT, str(short), *INV[4:]) if short else INV
    return f"{shlex.join([*inv, *map(str, words)])} 2>&1; echo exit code $?"


def test_results_on_a_full_disk_are_one_message_and_go_on(tmp_path: Path, disk: Path) -> None:
    """The program prints 90 kB, and ends well where there is no room for them."""
    out, printing = disk / "out", "sh -c 'head -c 90000 /dev/zero | tr \"\\0\" x || true'"
    resume = line("run", "--resume", "--out", out)
    full, listed, again, completed = on_small_disk(
        disk,
        "600k",
        line("run", "--program", printing, "--blocks", 6, "--out", out),
        f"ls -A {out}/blocks",
        resume,
        f"mount -o remount,size=64m {disk}; {resume}; cp -r {out} {tmp_path}/copy",
    )
    assert "go on: ./inv run --resume --out" in full or "with --resume" in full
    for output in (full, again):
        assert output.endswith("exit code 1\n"), output
    kept = listed.split()
    assert kept == [f"{number:04d}.json" for number in range(len(kept))]
    assert 0 < len(kept) < 6, full
    assert completed.endswith("exit code 0\n"), completed
    runs = read_runs(tmp_path / "copy")
    assert len(runs.blocks) == 6
    assert not any(block.lost for block in runs.blocks)


@pytest.mark.parametrize("filled", ["big", "{disk}/others"])
def test_a_run_in_which_the_disk_gets_full_is_no_result(
    tmp_path: Path, place: Path, disk: Path, filled: str
) -> None:
    """The third run fills it, in its own folder or elsewhere, and ends well."""
    count, out = tmp_path / "count", tmp_path / "out"
    count.touch()
    (place / "work.sh").write_text(
        f"printf x >>{count}\n"
        f"[ $(wc -c <{count}) = 3 ] && head -c 99999999 /dev/zero >{filled.format(disk=disk)}\n"
        "true\n"
    )
    stopped, left, completed = on_small_disk(
        disk,
        "32m",
        line("run", "--program", "sh work.sh", "--blocks", 3, "--out", out, short=disk),
        f"ls -A {disk}",
        f"rm -f {disk}/others; " + line("run", "--resume", "--out", out, short=disk),
    )
    assert f"the file system of {disk} is full" in stopped
    assert f"--resume --out {out}" in " ".join(stopped.split())
    assert stopped.endswith("exit code 1\n")
    assert left.split() in ([], ["others"])
    assert completed.endswith("exit code 0\n"), completed
    runs = read_runs(out)
    assert len(runs.blocks) == 3
    assert not any(block.lost for block in runs.blocks)


def test_a_copy_without_room_is_one_message(tmp_path: Path, place: Path, disk: Path) -> None:
    (place / "input").write_bytes(bytes(40 * 2**20))
    command = line("run", "--program", "true", "--out", tmp_path / "out", short=disk)
    output, left = on_small_disk(disk, "32m", command, f"ls -A {disk}")
    assert f"the file system of {disk} is full" in output
    assert "then begin again" in " ".join(output.split())
    assert output.endswith("exit code 1\n")
    assert not left


class OwnEngine:
    """A dockerd of a test's own, in a mount namespace of its own."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self.address = ""

    @contextlib.contextmanager
    def running(self) -> Iterator[docker.DockerClient]:
        """A client of it; it and all that it started are killed at the end of the block."""
        alone = ("unshare", "--mount", "--propagation=private")
        with scratch.folder(scratch.SHORT, "hbmcomm-test-") as folder:
            words, log = dockerd.private_command(self._data, folder), self._data.parent / "log"
            daemon, self.address = dockerd.start(log, [*alone, *words]), f"unix://{folder}/socket"
            try:
                client = engine.awaited(daemon, 60, self.address)
                if client is None:
                    pytest.skip(f"dockerd ended while it started: {dockerd.complaint(log)}")
                with contextlib.closing(client):
                    yield client
            finally:
                self.kill("dockerd", "containerd", "containerd-shim")
                daemon.wait()
                wait_for(lambda: not running(f"{folder}/exec"), "end of the engine", 30)

    def kill(self, *names: str) -> None:
        """Kill those of its processes; containers live on."""
        for pid in running(f"{Path(self.address.removeprefix('unix://')).parent}/"):
            if tracking.name(pid) in names:
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def own_engine(tmp_path: Path) -> OwnEngine:
    """An engine that a test may kill."""
    if os.getuid() != 0 or engine.executables.find("dockerd") is None:
        pytest.skip("no container engine is installed; sudo apt-get install -y docker.io iptables")
    (tmp_path / "data").mkdir()
    return OwnEngine(tmp_path / "data")


@pytest.fixture
def static(tmp_path: Path) -> Path:
    """A program without libraries, with a name of its own."""
    program = tmp_path / f"static-{os.getpid()}"
    (tmp_path / "static.c").write_text(STATIC)
    words = ["cc", "-O1", "-static", tmp_path / "static.c", "-o", program]
    subprocess.run(words, check=True, timeout=60)
    return program


def image_of(client: docker.DockerClient, program: Path, tag: str, note: str = "") -> None:
    """Make an image of one program, and of a note."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as files:
        files.add(program, program.name)
        entry = tarfile.TarInfo("note")
        entry.size = len(note)
        files.addfile(entry, io.BytesIO(note.encode()))
    client.api.import_image_from_data(archive.getvalue(), tag, "latest")


def begun(
    static: Path, out: Path, runtime: str, tag: str, **variables: str
) -> "subprocess.Popen[str]":
    """A user's command that measures the static program on the host and in containers."""
    words = ["run", "--program", f"/{static.name}", "--host-program", str(static), "--image", tag]
    words += ["--env", f"host,{runtime}", "--blocks", "3", "--out", str(out)]
    words += ["--seconds", "0.5", "--metric", "step ([0-9]+)"]
    return started(*words, **variables)


def started(*words: str, **variables: str) -> "subprocess.Popen[str]":
    """A user's command."""
    return subprocess.Popen(
        [*INV, *words],
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.rare
@pytest.mark.container
def test_a_docker_that_is_killed_in_a_block_leaves_nothing_at_work_and_its_campaign_goes_on(
    own_engine: OwnEngine, static: Path, tmp_path: Path
) -> None:
    out, tag, label = tmp_path / "out", "hbmcomm-test-static:latest", {"label": LABEL}
    with own_engine.running() as client:
        image_of(client, static, "hbmcomm-test-static")
        process = begun(static, out, "docker", tag, DOCKER_HOST=own_engine.address)
        wait_for((out / "blocks/0000.json").exists, "finished block", 60)
        wait_for(lambda: client.containers.list(filters=label), "container", 60)
        own_engine.kill("dockerd", "containerd")
        output = process.communicate(timeout=100)[0]
        assert not running(static.name)
    assert process.returncode == 1, output
    assert "docker no longer answers" in output
    assert f"--resume --out {out}" in output
    assert "Traceback" not in output, output
    kept = len(read_runs(out).blocks)
    assert 1 <= kept < 3
    with own_engine.running() as client:
        variables = {"DOCKER_HOST": own_engine.address}
        resumed = started("run", "--resume", "--out", str(out), **variables)
        output = resumed.communicate(timeout=100)[0]
        assert resumed.returncode == 0, output
        assert not client.containers.list(all=True, filters=label)
        assert [block.lost for block in read_runs(out).blocks] == [{}, {}, {}]
        (out / "blocks/0002.json").unlink()
        image_of(client, static, "hbmcomm-test-static", "another one")
        resumed = started("run", "--resume", "--out", str(out), **variables)
        output = resumed.communicate(timeout=100)[0]
        assert resumed.returncode == 1
        assert "the image hbmcomm-test-static:latest has changed since the campaign" in output
        assert "measure again into another --out" in " ".join(output.split())
        assert len(read_runs(out).blocks) == 2


@pytest.mark.rare
@pytest.mark.container
def test_a_podman_service_that_is_killed_leaves_nothing(static: Path, tmp_path: Path) -> None:
    """Podman's runs need no service, so the campaign goes on."""
    out, name = tmp_path / "out", f"hbmcomm-test-{static.name}"
    with contextlib.ExitStack() as stack:
        try:
            client = stack.enter_context(podman.running(tmp_path / "podman.log"))
        except Missing as error:
            pytest.skip(str(error))
        image_of(client, static, name)
        (tag,) = client.images.get(f"{name}:latest").tags
        stack.callback(client.images.remove, tag, force=True)
        process = begun(static, out, "podman", tag)
        stack.callback(process.terminate)
        service = f"podman.{process.pid}.sock"
        wait_for((out / "blocks/0000.json").exists, "finished block", 100)
        wait_for(lambda: running(f"/{static.name}"), "run", 60)
        for pid in running(service):
            os.kill(pid, signal.SIGKILL)
        output = process.communicate(timeout=200)[0]
        assert "Traceback" not in output, output
        assert not running(static.name)
        assert not client.containers.list(all=True, filters={"label": LABEL})
        if process.returncode:
            assert "podman no longer answers" in output
            assert f"--resume --out {out}" in output
            resumed = started("run", "--resume", "--out", str(out))
            output = resumed.communicate(timeout=200)[0]
            assert resumed.returncode == 0, output
        assert [block.lost for block in read_runs(out).blocks] == [{}, {}, {}]
