"""Ranks of torch.distributed, started as torchrun starts them: by environment variables alone."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.left import nothing_left

RANKS = Path(__file__).parent / "ranks"
OF_GLOO = re.compile(r"^\[Gloo\] .*\n", re.MULTILINE)
"""Lines that gloo of torch 2.10 to 2.12 prints."""


@dataclass(frozen=True)
class TorchRanks:
    """How ranks ended: the exit code and the output of each."""

    codes: list[int]
    outputs: list[str]

    def right(self) -> list[str]:
        """The outputs; fails where a rank did not end well."""
        assert not any(self.codes), "\n".join(self.outputs)
        return self.outputs


@pytest.fixture(scope="session")
def built() -> None:
    """The C++ part; skips where torch is not installed."""
    pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    from hbmcomm.torch.build import build

    build()


@pytest.fixture
def torch_ranks(built: None, tmp_path: Path) -> Iterator[Callable[..., TorchRanks]]:
    """torch_ranks(program, ranks, *args, timeout=100): run a program of `ranks` on so many ranks.

    `hosts` holds words before each rank's command, and `master` is the address of the first rank's.
    Nothing of them is left when it returns, in memory that processes share either.
    """

    def start(
        program: str,
        ranks: int,
        *args: str,
        timeout: float = 100.0,
        hosts: Sequence[Sequence[str]] = (),
        master: str = "127.0.0.1",
    ) -> TorchRanks:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        shared = {"MASTER_ADDR": master, "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks)}
        shared |= {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        logs = [tmp_path / f"{program}-{rank}.log" for rank in range(ranks)]
        running = []
        for rank, (log, words) in enumerate(zip(logs, hosts or [()] * ranks, strict=True)):
            with log.open("w") as output:
                running.append(
                    subprocess.Popen(
                        [*words, sys.executable, str(RANKS / f"{program}.py"), *args],
                        env=os.environ | shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
                        stdout=output,
                        stderr=subprocess.STDOUT,
                    )
                )
        deadline = time.monotonic() + timeout
        try:
            codes = [process.wait(max(deadline - time.monotonic(), 0.1)) for process in running]
        except subprocess.TimeoutExpired:
            pytest.fail("ranks still ran:\n" + "\n".join(log.read_text() for log in logs))
        finally:
            for process in running:
                process.kill()
                process.wait()
        return TorchRanks(codes, [OF_GLOO.sub("", log.read_text()) for log in logs])

    with nothing_left("hbmcomm.*"):
        yield start
