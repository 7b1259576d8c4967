"""What a user's program is run with, compiled for this machine and for Arm."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from experiments.jobs.gate import Gate
from experiments.jobs.slices import Run
from experiments.model.errors import Missing
from experiments.model.program import KEEPER, LARGE, LIBRARY, SOCKET, Timed
from experiments.processes import scratch
from experiments.provision import gate_build

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64-static"
LIBRARIES = Path("/usr/aarch64-linux-gnu")
ARM = 183  # e_machine of elf(5)
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    double sum = 0;
    for (int i = 0; i < 3000000; i++) sum += i;
    puts(getenv("LD_PRELOAD") && sum > 0 ? "preloaded" : "alone");
    return 7;
}
"""


def test_no_compiler_is_said_so_with_its_package() -> None:
    with pytest.raises(Missing, match=r"no C compiler 'no-such-cc'.*apt-get install -y gcc"):
        gate_build.ensure("no-such-cc")


def test_a_program_of_arm_is_held_timed_and_stopped(tmp_path: Path) -> None:
    """User-mode emulation runs both; it shows functions, not the order of memory."""
    for program in (COMPILER, EMULATOR):
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program} on this machine")
    (tmp_path / "program.c").write_text(PROGRAM)
    line = [COMPILER, "-O1", "program.c", "-o", "program"]
    subprocess.run(line, cwd=tmp_path, check=True, timeout=60)
    compiled = gate_build.ensure(COMPILER)
    for name in (KEEPER, LIBRARY, LARGE):
        assert int.from_bytes((compiled / name).read_bytes()[18:20], "little") == ARM
    with scratch.folder(scratch.SHORT, "hbmcomm-test-") as folder, Gate(folder, ()) as gate:
        gate_build.put(folder, compiled)
        words = [EMULATOR, "-L", LIBRARIES, tmp_path / "program"]
        kept = [EMULATOR, folder / KEEPER, folder / SOCKET, folder / LIBRARY, tmp_path, "--"]
        process = subprocess.Popen(
            [str(word) for word in (*kept, *words)], stdout=subprocess.PIPE, env=dict(os.environ)
        )
        run = Run(gate, process.poll)
        run.await_keeper(30.0)
        run.make_ready(Timed.WHOLE, 30.0)
        while not run.work(0.02):
            assert run.slices < 1000
        assert run.finish(30.0) == 7
        printed, _ = process.communicate()
    assert printed == b"preloaded\n"
    assert run.slices > 1
    names = ["nm", "-D", "--undefined-only", compiled / LIBRARY]
    shown = subprocess.run(names, capture_output=True, text=True, check=True, timeout=60).stdout
    assert not re.search(r"__isoc23|__.*_chk", shown), "older C libraries have no such function"
    assert run.gate.facts["cpus"] == len(os.sched_getaffinity(0))
