"""Files are written where a plain file has the name or none; nothing waits for a pipe's reader."""

import os
import socket
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from experiments.driver import reaper
from experiments.model import plain_file
from experiments.model.errors import ExperimentsError
from experiments.processes import executables

KINDS = ("pipe", "pipe with a reader", "link", "folder", "socket")


def make(path: Path, kind: str) -> Callable[[], object]:
    """Something that is no plain file; the function ends what it needs."""
    if kind == "link":
        path.symlink_to(path.parent / "elsewhere")
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(path))
        return listening.close
    else:
        os.mkfifo(path)
        if kind != "pipe":
            return partial(os.close, os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    return lambda: None


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_plain_file_is_not_written(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "logs" / "guard.log"
    path.parent.mkdir()
    end = make(path, kind)
    for append in (False, True):
        with (
            pytest.raises(ExperimentsError, match=f"{path} is no plain file"),
            plain_file.written(path, append),
        ):
            pass
    with pytest.raises(ExperimentsError, match=f"{path} is no plain file"):
        executables.start([sys.executable, "-c", ""], path, {})
    reaper._log(tmp_path, "a line")
    assert [entry.name for entry in path.parent.iterdir()] == ["guard.log"]
    end()


def test_a_plain_file_is_made_emptied_or_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for append, content in ((False, b"one"), (True, b"oneone"), (False, b"one")):
        with plain_file.written(path, append) as file:
            file.write(b"one")
        assert path.read_bytes() == content
