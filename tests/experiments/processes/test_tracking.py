"""Processes are found by variables that any user can set: other users' processes do not count."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from experiments.processes import tracking
from tests.awaiting import alive, wait_for
from tests.second_user import SecondUser

ROOT = Path(__file__).parents[3]
NOBODYS = 4_100_000_000  # no account of any machine has it
CARRIER = ("sh", "-c", "echo; exec sleep 600")


@contextmanager
def carrier(words: list[str], **variables: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A process with variables, which runs."""
    environment = {"PATH": os.environ["PATH"], **variables}
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            process.stdout.readline()
            wait_for(lambda: tracking.name(process.pid) == "sleep", "program")
            yield process
        finally:
            process.kill()


def test_a_mark_of_this_user_is_found_and_ended() -> None:
    mark = tracking.new_mark()
    with carrier([*CARRIER], **{tracking.MARK: mark}) as process:
        assert tracking.is_own(process.pid)
        assert tracking.marked(mark) == {tracking.identity(process.pid)}
        assert tracking.marked(tracking.own_mark()) >= tracking.marked(mark)
        tracking.end_marked(mark)
        assert process.wait(5)


def test_a_program_that_has_just_begun_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its environment is empty at the first look, as it is while a program is executed."""
    look = tracking.marked
    for number in (signal.SIGKILL, signal.SIGTERM):
        mark, first_look = tracking.new_mark(), [set[str]()]
        monkeypatch.setattr(
            tracking,
            "marked",
            lambda wanted, first=first_look: first.pop() if first else look(wanted),
        )
        with carrier([*CARRIER], **{tracking.MARK: mark}) as process:
            if number == signal.SIGKILL:
                tracking.end_marked(mark)
                assert not alive(process.pid)
            else:
                assert tracking.terminate_marked(mark, 2.0) == 1
            assert process.wait(5) == -number


def test_a_mark_has_a_secret_that_each_process_draws_anew() -> None:
    program = "from experiments.processes import tracking; print(tracking.own_mark())"
    other = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    assert tracking.own_mark() == tracking.own_mark()
    ours, theirs = (mark.split(".") for mark in (tracking.own_mark(), other))
    assert ".".join(ours[:2]) == tracking.identity(os.getpid())
    assert len(ours[2]) == 16 and ours[2] != theirs[2]


def test_a_process_of_another_user_counts_for_nothing(second_user: SecondUser) -> None:
    mark, daemon = tracking.new_mark(), tracking.own_mark()
    variables = {tracking.MARK: mark, tracking.DAEMON: daemon}
    with carrier(second_user.command(CARRIER), **variables) as process:
        environ = Path(f"/proc/{process.pid}/environ").read_bytes()
        assert mark.encode() in environ  # a scan reads it
        assert not tracking.is_own(process.pid)
        assert tracking.marked(mark) == set()
        assert tracking.daemon_of_ours(process.pid) == ""
        tracking.end_marked(mark)
        assert process.poll() is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives processes another user")
def test_roots_ranks_in_a_container_run_as_nobody_and_are_ended() -> None:
    mark = tracking.new_mark()
    words = ["setpriv", f"--reuid={NOBODYS}", f"--regid={NOBODYS}", "--clear-groups", *CARRIER]
    variables = {tracking.MARK: mark, tracking.DAEMON: tracking.own_mark()}
    with carrier(words, **variables) as process:
        assert not tracking.is_own(process.pid)
        assert tracking.daemon_of_ours(process.pid) == ""  # no engine runs so
        tracking.end_marked(mark)
        assert process.wait(5)


def test_links_and_files_of_others_in_shared_memory_are_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, second_user: SecondUser
) -> None:
    monkeypatch.setattr(tracking, "SHM", tmp_path)
    precious, link, theirs = (tmp_path / name for name in ("x", "sm_segment.1", "sm_segment.2"))
    precious.touch()
    link.symlink_to(precious)
    theirs.touch()
    os.chown(theirs, second_user.uid, second_user.gid)
    nobodys = tmp_path / "vader_segment.1"  # of ranks that root started as another user
    nobodys.touch()
    os.chown(nobodys, NOBODYS, NOBODYS)
    tracking.remove_segments(set())
    assert sorted(path.name for path in tmp_path.iterdir()) == [link.name, theirs.name, "x"]


def test_a_launchers_folder_of_another_user_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, second_user: SecondUser
) -> None:
    monkeypatch.setattr(tracking.tempfile, "gettempdir", lambda: str(tmp_path))
    with subprocess.Popen(["true"]) as ended:
        pass
    folder = tmp_path / f"ompi.{ended.pid}"
    for owner, stays in ((second_user.uid, True), (0, False)):
        folder.mkdir(exist_ok=True)
        os.chown(folder, owner, owner)
        tracking.remove_job_folder(ended.pid)
        assert folder.exists() == stays


def test_one_file_alone_looks_for_processes() -> None:
    """What others find in /proc, they ask it for: it knows whose a process is."""
    scan = re.compile(r"Path\(\"/proc\"\)\.(r?glob|iterdir)|(listdir|scandir|walk)\(\"/proc\"")
    looking = {
        path.relative_to(ROOT).as_posix()
        for storey in ("experiments", "hbmcomm", "plots", "commands")
        for path in (ROOT / storey).rglob("*.py")
        if scan.search(path.read_text(encoding="utf-8"))
    }
    assert looking == {"experiments/processes/tracking.py"}


def test_files_in_a_folder_that_takes_the_place_of_dev_shm_count_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracking, "MAP_PATIENCE", 0.1)
    before = tracking.segments()
    monkeypatch.setenv("HBMCOMM_SHM", str(tmp_path))
    left = tmp_path / "hbmcomm.0123456789abcdef"
    left.write_bytes(bytes(8))
    (tmp_path / "theirs").touch()
    assert tracking.segments() - before >= {left}
    tracking.remove_segments(tracking.segments() - {left})
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]
