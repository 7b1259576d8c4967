"""What a rank says before it ends the others."""

import os
import threading
import time
from pathlib import Path

from experiments.programs import rank_process

LATE = 0.2  # seconds
PATIENCE = 0.1  # seconds


def test_it_waits_until_a_late_reader_has_read_all() -> None:
    reader, writer = os.pipe()
    taken: list[float] = []

    def read() -> None:
        time.sleep(LATE)
        os.read(reader, 4096)
        taken.append(time.monotonic())

    os.write(writer, b"why it failed")
    thread = threading.Thread(target=read)
    thread.start()
    rank_process.await_read(writer)
    ended = time.monotonic()
    thread.join()
    assert ended >= taken[0]


def test_it_does_not_wait_for_ever_for_a_launcher_that_does_not_read() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"why it failed")
    rank_process.await_read(writer, PATIENCE)
    os.close(reader)


def test_a_file_is_read_by_nobody(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb", buffering=0) as file:
        file.write(b"why it failed")
        began = time.monotonic()
        rank_process.await_read(file.fileno(), 60.0)
    assert time.monotonic() - began < 30.0
