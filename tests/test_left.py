"""Files in /dev/shm count where processes of the test made them, and nowhere else."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.left import nothing_left, own_files
from tests.second_user import SecondUser

PATTERN = f"test-left-{os.getpid()}-*"  # no name of a segment: other jobs would remove it


def path(name: str) -> Path:
    return Path("/dev/shm", PATTERN.replace("*", name))


@pytest.fixture(autouse=True)
def _removed() -> Iterator[None]:
    yield
    for file in Path("/dev/shm").glob(PATTERN):
        file.unlink()


def test_what_a_process_of_the_block_leaves_fails_it_until_it_is_gone() -> None:
    with pytest.raises(AssertionError, match="mine"), nothing_left(PATTERN):
        subprocess.run(["touch", path("mine")], check=True)
    with nothing_left(PATTERN):
        path("mine").unlink()
        path("again").touch()
        path("again").unlink()


def test_what_was_there_and_what_may_stay_does_not_count() -> None:
    path("before").touch()
    with nothing_left(besides=(PATTERN,)), own_files(PATTERN) as files:
        path("may-stay").touch()
        assert files() == {path("may-stay")}


def test_another_users_job_does_not_count(second_user: SecondUser) -> None:
    with nothing_left(PATTERN), own_files(PATTERN, containers=True) as files:
        assert second_user.run(["touch", str(path("theirs"))]).returncode == 0
        assert path("theirs").exists()
        assert not files()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a block a group of its own")
def test_another_job_of_this_user_does_not_count() -> None:
    words = ["sh", "-c", f"read go; touch {path('other')}"]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as job, nothing_left(PATTERN):
        job.communicate(b"go\n")
        assert path("other").exists()


def test_the_groups_of_the_tests_are_as_before() -> None:
    groups = os.getresgid()
    with pytest.raises(AssertionError), nothing_left(PATTERN):
        path("left").touch()
    assert os.getresgid() == groups
