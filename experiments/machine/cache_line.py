"""How long a line of a cache takes from one CPU to another and back, measured when it is asked for.

A virtual machine's host moves its CPUs apart and together again within minutes, which changes what
shared memory costs several times over. No counter shows it; this time does.
"""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path


class CacheLine:
    """Two CPUs, and the program that measures between them; it sleeps until it is asked."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def nanoseconds(self) -> int:
        """Of a round trip; 0 where something else works on these CPUs, or the program is gone."""
        assert self._process.stdin and self._process.stdout
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(b"?")
            return int(self._process.stdout.readline())
        return 0


@contextlib.contextmanager
def between_cpus(program: Path) -> Iterator[CacheLine | None]:
    """The line between the first two CPUs that this process may use; None where it has one.

    Args:
        program: line, as provision/gate_build.py makes it.
    """
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        yield None
        return
    with subprocess.Popen(
        [program, *map(str, cpus)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
    ) as process:
        try:
            yield CacheLine(process)
        finally:
            assert process.stdin
            process.stdin.close()  # with which it ends
