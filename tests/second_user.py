"""An ordinary account beside the one that runs the tests, for attacks by another user."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class SecondUser:
    """The account; it owns nothing, and is in no group but its own."""

    name: str
    uid: int
    gid: int

    def command(self, words: Sequence[str]) -> list[str]:
        """The command that runs `words` as this user."""
        ids = [f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups"]
        return ["setpriv", *ids, "--", *map(str, words)]

    def run(self, words: Sequence[str], **how: Any) -> "subprocess.CompletedProcess[str]":
        """Run a program as this user, to its end; `how` as for subprocess.run()."""
        usual = {"capture_output": True, "text": True, "check": False, "timeout": 60}
        done: subprocess.CompletedProcess[str] = subprocess.run(self.command(words), **usual | how)
        return done


@pytest.fixture(scope="session")
def second_user() -> Iterator[SecondUser]:
    """An account made for the tests and removed after them; skipped where none can be made."""
    if os.geteuid() != 0:
        pytest.skip("a second user is made by root alone: run the tests as root")
    lacking = [name for name in ("useradd", "userdel", "setpriv") if not shutil.which(name)]
    if lacking:
        pytest.skip(f"no {' and '.join(lacking)} here; install passwd and util-linux")
    name = f"hbmother{os.getpid()}"
    made = subprocess.run(
        ["useradd", "--no-create-home", "--user-group", "--shell", "/bin/sh", name],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"no second user can be made: {made.stderr.strip()}")
    try:
        uid, gid = (
            int(subprocess.run(["id", flag, name], capture_output=True, check=True).stdout)
            for flag in ("-u", "-g")
        )
        yield SecondUser(name, uid, gid)
    finally:
        subprocess.run(["userdel", name], capture_output=True, check=False)


@pytest.fixture
def shared_by_users() -> Iterator[Path]:
    """A folder of this user that others can enter; tmp_path is within one that they cannot."""
    with tempfile.TemporaryDirectory(prefix="hbmcomm-users-") as name:
        Path(name).chmod(0o755)
        yield Path(name)
