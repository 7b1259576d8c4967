"""A results folder has one driver; a killed one's guard is waited for, a living one is not."""

import fcntl
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.model.errors import ExperimentsError
from experiments.processes import folder_lock, tracking


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that lives as long as the test."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        yield process
        process.kill()


def noted(taken: folder_lock.FolderLock, driver: str, place: str | None = None) -> None:
    taken.note(driver=driver, place=place or folder_lock.pid_namespace(), host="elsewhere")


def dead() -> str:
    """The identity of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        return tracking.identity(process.pid)


def test_facts_are_read_back_and_one_cut_short_is_left_out(tmp_path: Path) -> None:
    taken = folder_lock.take(tmp_path, print)
    assert taken.facts() == {}
    taken.note(campaign="a", engines=[])
    taken.note(engines=["docker"])
    os.write(taken.descriptor, b'{"campaign": "b')
    assert taken.facts() == {"campaign": "a", "engines": ["docker"]}
    taken.forget()
    assert taken.facts() == {}
    taken.release()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_made_for_a_claim_and_goes_with_it_when_nothing_was_begun(
    tmp_path: Path,
) -> None:
    for keep in (False, True):
        folder = tmp_path / "new"
        taken = folder_lock.take(folder, print)
        if keep:
            (folder / "campaign.json").write_text("{}")
        taken.release()
        assert folder.exists() == keep


def test_a_second_driver_is_refused_and_reported_who_the_first_is(
    tmp_path: Path, sleeper: "subprocess.Popen[bytes]"
) -> None:
    taken = folder_lock.take(tmp_path, print)
    noted(taken, tracking.identity(sleeper.pid))
    with pytest.raises(ExperimentsError, match=rf"process {sleeper.pid}\).*kill {sleeper.pid}"):
        folder_lock.take(tmp_path, print)
    noted(taken, tracking.identity(sleeper.pid), "another boot")
    with pytest.raises(ExperimentsError, match="on another machine or in a container"):
        folder_lock.take(tmp_path, print)
    taken.release()


def test_a_lock_of_nobody_known_is_refused(tmp_path: Path) -> None:
    with (tmp_path / folder_lock.NAME).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(ExperimentsError, match="is locked"):
            folder_lock.take(tmp_path, print)


def test_the_guard_of_a_killed_driver_is_waited_for(tmp_path: Path) -> None:
    lines: list[str] = []
    taken = folder_lock.take(tmp_path, print)
    noted(taken, dead())
    threading.Timer(0.5, taken.release).start()
    began = time.monotonic()
    again = folder_lock.take(tmp_path, lines.append)
    assert 0.4 < time.monotonic() - began < 5
    assert lines == [f"waiting until what a killed driver left of {tmp_path} is cleared away"]
    assert again.facts() == {}
    again.release()


def test_a_guard_that_does_not_come_to_an_end_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_lock, "PATIENCE", 0.3)
    taken = folder_lock.take(tmp_path, print)
    noted(taken, dead())
    with pytest.raises(ExperimentsError, match="is not cleared away after 0 s"):
        folder_lock.take(tmp_path, print)
    taken.release()


def test_what_a_driver_noted_whose_guard_was_killed_too_is_there_for_the_next(
    tmp_path: Path,
) -> None:
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
