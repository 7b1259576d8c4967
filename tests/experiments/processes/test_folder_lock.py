"""A results folder has one driver; a killed one's guard is waited for, a living one is not."""

import contextlib
import fcntl
import functools
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.driver import watchdog
from experiments.model.errors import ExperimentsError
from experiments.processes import folder_lock, ownership, tracking
from tests.second_user import SecondUser


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that lives as long as the test."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


@pytest.fixture
def taken(tmp_path: Path) -> Iterator[folder_lock.FolderLock]:
    """The lock of the test's folder, held by the test."""
    lock = folder_lock.take(tmp_path, print)
    yield lock
    lock.release()


def noted(taken: folder_lock.FolderLock, driver: str, place: str | None = None) -> None:
    place = place or folder_lock.pid_namespace()
    taken.note(driver=driver, place=place, host="elsewhere", segments=[])


@functools.cache
def dead() -> str:
    """The identity of a process that has ended."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        return tracking.identity(process.pid)


def test_facts_are_read_back_and_one_cut_short_is_left_out(tmp_path: Path) -> None:
    taken = folder_lock.take(tmp_path, print)
    assert taken.facts() == {}
    ours = f"a-{ownership.digest_of(tmp_path)}"
    taken.note(campaign=ours, engines=[])
    assert taken.facts() == {}  # no driver noted it
    taken.note(driver="7.77", engines=["docker"])
    os.write(taken.descriptor, b'{"campaign": "b')
    assert taken.facts() == {"driver": "7.77", "campaign": ours, "engines": ["docker"]}
    taken.forget()
    assert taken.facts() == {}
    taken.release()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_made_for_a_claim_and_goes_with_it_when_empty(tmp_path: Path) -> None:
    for keep in (False, True):
        folder = tmp_path / "new"
        taken = folder_lock.take(folder, print)
        if keep:
            (folder / "campaign.json").write_text("{}")
        taken.release()
        assert folder.exists() == keep


def test_a_second_driver_is_refused_and_reported_who_the_first_is(
    tmp_path: Path, taken: folder_lock.FolderLock, sleeper: "subprocess.Popen[bytes]"
) -> None:
    noted(taken, tracking.identity(sleeper.pid))
    with pytest.raises(ExperimentsError, match=rf"process {sleeper.pid}\).*kill {sleeper.pid}"):
        folder_lock.take(tmp_path, print)
    noted(taken, tracking.identity(sleeper.pid), "another boot")
    with pytest.raises(ExperimentsError, match="on another machine or in a container"):
        folder_lock.take(tmp_path, print)


def test_a_lock_of_nobody_known_is_refused(tmp_path: Path) -> None:
    with (tmp_path / folder_lock.NAME).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(ExperimentsError, match="is locked"):
            folder_lock.take(tmp_path, print)


def test_the_guard_of_a_killed_driver_is_waited_for(tmp_path: Path) -> None:
    lines: list[str] = []
    taken = folder_lock.take(tmp_path, print)
    noted(taken, dead())

    def end_of_guard(line: str) -> None:
        lines.append(line)
        taken.release()

    again = folder_lock.take(tmp_path, end_of_guard)
    assert lines == [f"waiting until what a killed driver left of {tmp_path} is cleared away"]
    assert again.facts() == {}
    again.release()


def test_a_guard_that_does_not_come_to_an_end_is_named(
    tmp_path: Path, taken: folder_lock.FolderLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_lock, "PATIENCE", 0.3)
    noted(taken, dead())
    with pytest.raises(ExperimentsError, match="is not cleared away after 0 s"):
        folder_lock.take(tmp_path, print)


def test_notes_of_a_driver_and_guard_that_were_killed_are_for_the_next(tmp_path: Path) -> None:
    taken, driver = folder_lock.take(tmp_path, print), dead()
    noted(taken, driver)
    os.close(taken.descriptor)  # as their end does
    again = folder_lock.take(tmp_path, print)
    assert again.facts()["driver"] == driver
    again.release()


def test_a_file_system_without_locks_still_tells_a_living_driver(
    tmp_path: Path, sleeper: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_lock, "_lock", lambda descriptor: True)
    taken = folder_lock.take(tmp_path, print)
    noted(taken, tracking.identity(sleeper.pid))
    with pytest.raises(ExperimentsError, match=f"kill {sleeper.pid}"):
        folder_lock.take(tmp_path, print)
    taken.release()


def test_a_lock_that_is_a_link_is_refused_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    precious, folder = tmp_path / "precious", tmp_path / "out"
    precious.write_text("as it was")
    folder.mkdir()
    for lead in ((folder / folder_lock.NAME).symlink_to, (folder / folder_lock.NAME).hardlink_to):
        lead(precious)
        with pytest.raises(ExperimentsError, match="is no plain file of user"):
            folder_lock.take(folder, print)
        (folder / folder_lock.NAME).unlink()
    assert precious.read_text() == "as it was"


def test_a_folder_that_others_can_write_into_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    folder.chmod(0o775)
    with pytest.raises(ExperimentsError, match=f"chmod go-w {folder}"):
        folder_lock.take(folder, print)
    assert list(folder.iterdir()) == []


def test_a_new_folder_is_its_makers_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        taken = folder_lock.take(tmp_path / "out", print)
    finally:
        os.umask(before)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o755
    assert os.fstat(taken.descriptor).st_mode & 0o777 == 0o600
    taken.release()


def test_what_another_user_owns_is_refused(tmp_path: Path, second_user: SecondUser) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    lock = folder / folder_lock.NAME
    lock.touch()
    os.chown(lock, second_user.uid, second_user.gid)
    with pytest.raises(ExperimentsError, match="is no plain file of user 0"):
        folder_lock.take(folder, print)
    os.chown(folder, second_user.uid, second_user.gid)
    with pytest.raises(ExperimentsError, match=f"belongs to user {second_user.uid}, and this is"):
        folder_lock.take(folder, print)


def test_a_lock_from_elsewhere_ends_no_process_of_another_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its writer sees the PID and the start of a driver, and never its mark."""
    monkeypatch.setattr(tracking, "SHM", tmp_path)
    driver = tracking.identity(os.getpid())
    ranks = os.environ | {tracking.MARK: tracking.new_mark()}
    forged = {"place": folder_lock.pid_namespace(), "host": "", "segments": []}
    with subprocess.Popen(["sleep", "600"], env=ranks) as rank, contextlib.ExitStack() as stack:
        stack.callback(rank.kill)
        for number, mark in enumerate((driver, str(os.getpid()), f"{driver}.0")):
            folder = tmp_path / str(number)
            folder.mkdir()
            descriptor = os.open(folder / folder_lock.NAME, os.O_RDWR | os.O_CREAT)
            folder_lock.FolderLock(folder, descriptor).note(driver="7.77", mark=mark, **forged)
            os.close(descriptor)
            with watchdog.watching(folder, print):
                assert rank.poll() is None


GOOD = {"driver": "1.2", "place": "another boot", "host": "a", "segments": []}


def test_what_no_driver_notes_is_refused_with_the_file_and_the_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is removed; the file stays as well, to be looked at."""
    monkeypatch.setattr(tracking, "SHM", tmp_path)
    out, segment = tmp_path / "out", tmp_path / "sm_segment.other"
    (out / "incoming").mkdir(parents=True)
    segment.touch()
    lock = out / folder_lock.NAME
    for content, fault in (
        ({"driver": "1.2"}, "it lacks place"),
        ({**GOOD, "segments": 5}, "segments must be a list of texts"),
        ({**GOOD, "segments": [5]}, "segments must be a list of texts"),
        ({**GOOD, "segments": None}, "segments must be a list of texts"),
        ({key: GOOD[key] for key in GOOD if key != "segments"}, "it lacks segments"),
        ({**GOOD, "place": 5}, "place must be a line of text"),
        ({**GOOD, "host": "\x1b]0;owned"}, "host must be a line of text"),
        ({**GOOD, "engines": {}}, "engines must be a list of texts"),
        (5, "a line holds no JSON object"),
        ("[" * 200_000, "it holds lists within each other"),
        (None, "it has 21474836480 bytes, and 16777216 at most are read"),
    ):
        lock.write_text(content if isinstance(content, str) else json.dumps(content) + "\n")
        if content is None:
            os.truncate(lock, 20 * 2**30)  # sparse
        with (
            pytest.raises(ExperimentsError, match=rf"{lock} holds what no driver notes .{fault}"),
            watchdog.watching(out, print),
        ):
            pass
        assert segment.exists() and lock.exists() and (out / "incoming").exists(), fault


def test_what_is_no_process_is_no_driver(taken: folder_lock.FolderLock) -> None:
    for driver in (7.77, "\u0667.\u0667", f"{'9' * 20}.1"):
        taken.note(**{**GOOD, "driver": driver})
        assert taken.facts() == {}, driver


def test_a_copied_lock_removes_no_segment_and_the_driver_s_own_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracking, "SHM", tmp_path)
    monkeypatch.setattr(tracking, "MAP_PATIENCE", 0.0)
    segment = tmp_path / "sm_segment.other"
    for is_copy in (True, False):
        folder = tmp_path / str(is_copy)
        taken = folder_lock.take(folder, print)
        noted(taken, dead())
        taken.note(inode=taken.inode)
        os.close(taken.descriptor)
        if is_copy:
            (folder / folder_lock.NAME).rename(tmp_path / "first")
            shutil.copy(tmp_path / "first", folder / folder_lock.NAME)
        segment.touch()
        with watchdog.watching(folder, print):
            assert segment.exists() == is_copy


def test_a_lock_of_another_mode_becomes_private(tmp_path: Path) -> None:
    (tmp_path / folder_lock.NAME).touch(0o644)
    taken = folder_lock.take(tmp_path, print)
    assert os.fstat(taken.descriptor).st_mode & 0o777 == 0o600
    taken.release()


def test_a_lock_from_elsewhere_names_no_container_of_another_folder(
    tmp_path: Path, taken: folder_lock.FolderLock
) -> None:
    """Its writer can know where the other folder is, and the id of the campaign in it."""
    other = f"17f3-{ownership.digest_of(tmp_path / 'other')}"
    for forged in ("17f3", "17f3-", other, [other], None):
        taken.note(driver="7.77", campaign=forged, engines=["docker"])
        assert taken.facts() == {"driver": "7.77"}, forged
