"""What a killed maker left is removed by the next one; what a living one makes is not."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.model.errors import ExperimentsError
from experiments.processes import scratch
from tests.second_user import SecondUser

MAKE = """
import sys, time
from pathlib import Path
from experiments.processes import scratch
with scratch.folder(Path(sys.argv[1]), ".new-") as place:
    (place / "file").write_text("x")
    print(place, flush=True)
    time.sleep(600)
"""
MOUNTS = """\
36 35 98:0 / / rw,noatime - ext4 /dev/root rw
37 36 0:5 / /var/tmp/base-1/proc rw - proc proc rw
38 37 0:6 / /var/tmp/base-1/proc/sys/fs rw - tmpfs tmpfs rw
39 36 0:7 / /var/tmp/base-10/proc rw - proc proc rw
"""


@pytest.fixture
def maker(tmp_path: Path) -> Iterator[tuple["subprocess.Popen[str]", Path]]:
    """A process that is making something, and where."""
    command = [sys.executable, "-c", MAKE, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())
        process.kill()


def test_a_folder_goes_with_its_block(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), scratch.folder(tmp_path, ".new-") as place:
        (place / "file").write_text("x")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_a_killed_makers_folder_goes_with_the_next_and_a_living_ones_stays(
    tmp_path: Path, maker: tuple["subprocess.Popen[str]", Path]
) -> None:
    process, theirs = maker
    with scratch.folder(tmp_path, ".new-") as ours:
        assert set(tmp_path.iterdir()) == {ours, theirs}
    process.kill()
    process.wait()
    with scratch.folder(tmp_path, ".new-") as ours:
        assert set(tmp_path.iterdir()) == {ours}


def test_a_folder_of_another_boot_stays_for_a_day(tmp_path: Path) -> None:
    other = tmp_path / ".new-00000000.1.1-abc"
    other.mkdir()
    scratch.remove_abandoned(tmp_path, ".new-")
    assert other.exists()
    yesterday = time.time() - scratch.FORGOTTEN - 1
    os.utime(other, (yesterday, yesterday))
    scratch.remove_abandoned(tmp_path, ".new-")
    assert not other.exists()


def test_what_is_mounted_in_a_folder_is_found_the_innermost_first() -> None:
    assert scratch.mounted_below(Path("/var/tmp/base-1"), MOUNTS) == [
        "/var/tmp/base-1/proc/sys/fs",
        "/var/tmp/base-1/proc",
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_mount_that_was_left_goes_before_the_folder_is_emptied(tmp_path: Path) -> None:
    source, place = tmp_path / "source", tmp_path / ".new-x"
    for folder in (source, place, place / "mounted"):
        folder.mkdir()
    (source / "precious").write_text("x")
    mount = ["mount", "--bind", str(source), str(place / "mounted")]
    if subprocess.run(mount, check=False).returncode:
        pytest.skip("this sandbox mounts nothing")
    scratch.remove(place)
    assert not place.exists()
    assert (source / "precious").exists()


def test_what_a_quicker_process_made_is_taken(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "new", tmp_path / "named"
    for folder in (ours, theirs):
        folder.mkdir()
        (folder / "a.whl").write_bytes(folder.name.encode())
    scratch.settle(ours, theirs)
    assert (theirs / "a.whl").read_bytes() == b"named"


def test_what_older_inputs_made_goes_and_nothing_else(tmp_path: Path) -> None:
    for name in ("cp311-mpich-new", "cp311-mpich-old", "cp311-openmpi-old", "place"):
        (tmp_path / name).mkdir()
    scratch.remove_superseded(tmp_path / "cp311-mpich-new", tmp_path / "place")
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["cp311-mpich-new", "cp311-openmpi-old", "place"]
    assert [path.name for path in (tmp_path / "place").iterdir()] == ["cp311-mpich-old"]


def test_what_another_user_calls_so_stays(tmp_path: Path, second_user: SecondUser) -> None:
    theirs, link = tmp_path / ".new-00000000.1.1-abc", tmp_path / ".new-00000000.1.1-abd"
    theirs.mkdir()
    (theirs / "file").touch()
    os.utime(theirs, (1, 1))
    os.chown(theirs, second_user.uid, second_user.gid)
    link.symlink_to(theirs)
    scratch.remove_abandoned(tmp_path, ".new-")
    assert (theirs / "file").exists() and link.is_symlink()


def test_a_lock_empties_no_file_that_a_link_leads_to(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("as it was")
    (tmp_path / ".lock").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic links"), scratch.locked(tmp_path):
        pass
    assert (tmp_path / "precious").read_text() == "as it was"


def test_no_other_user_can_hold_a_lock(shared_by_users: Path, second_user: SecondUser) -> None:
    """A lock of an older version, too, which everybody could read."""
    lock = shared_by_users / ".lock"
    for mode in (None, 0o644):
        if mode:
            lock.chmod(mode)
        with scratch.locked(shared_by_users):
            assert lock.stat().st_mode & 0o777 == 0o600
        done = second_user.run(["flock", "--nonblock", lock, "true"])
        assert "Permission denied" in done.stderr


def test_a_lock_of_another_user_is_named(shared_by_users: Path, second_user: SecondUser) -> None:
    with scratch.locked(shared_by_users):
        pass
    os.seteuid(second_user.uid)
    try:
        with (
            pytest.raises(ExperimentsError, match=r"\.lock cannot be opened .Permission denied"),
            scratch.locked(shared_by_users),
        ):
            pass
    finally:
        os.seteuid(0)


def test_waiting_for_a_lock_is_shown_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(scratch, "QUIET", 0.05)
    with contextlib.ExitStack() as held:
        held.enter_context(scratch.locked(tmp_path, say=lines.append))

        def then_end(line: str) -> None:
            lines.append(line)
            held.close()

        with scratch.locked(tmp_path, say=then_end):
            pass
    waiting = "waiting for a process that makes something in"
    text = f"{waiting} {tmp_path}: it holds {tmp_path / '.lock'}"
    assert lines == [text]
    monkeypatch.setattr(scratch, "PATIENCE", 0.2)
    expected = r"has held .*/\.lock for 0 minutes; see which .fuser"
    with (
        scratch.locked(tmp_path, say=lines.append),
        pytest.raises(ExperimentsError, match=expected),
        scratch.locked(tmp_path, say=lines.append),
    ):
        pass
    assert lines == [text, text]
