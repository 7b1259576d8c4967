"""Campaigns on a real Slurm of which something is killed: the job ends soon, nothing of it stays.

Its arms take turns. HBMCOMM_KILLS times the link of a node is cut, or the driver, a rank or slurmd
is killed, at moments drawn with HBMCOMM_SEED; one campaign goes on after each. Slurm itself gives a
node up after 30 s. By hand, with a line for each kill:
    HBMCOMM_KILLS=80 .venv/bin/pytest -s tests/experiments/cluster/test_deaths.py
"""

import contextlib
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests import slurm_cluster
from tests.awaiting import seconds_until
from tests.slurm_cluster import Cluster, begin

KILLS = int(os.environ.get("HBMCOMM_KILLS", "2"))
SEED = int(os.environ.get("HBMCOMM_SEED", "1"))
KINDS = {
    "driver": ("n1", "--search-root"),
    "rank": ("n2", "experiments.programs.on_a_node"),
    "slurmd": ("n2", "/slurmd"),
}
"""The host of what is killed, and a word of its command."""
LINK_OF = "n2"
NOTHING = 0  # a signal that only asks whether there is a process
START = 120.0  # seconds until ranks run
LATEST = 10.0 if "HBMCOMM_KILLS" in os.environ else 60.0
"""Seconds from a kill until nothing runs and the login node says so; more on a busy machine."""

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(3600)]


def left(slurm: Cluster, out: Path) -> list[str]:
    """What still runs of a campaign on any host, and what is in shared memory."""
    remains = []
    for host in (*slurm.hosts.names, "ctl"):
        for pid in slurm.hosts.processes(host):
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if any(str(out).encode() in word for word in words):
                    remains.append(f"{host}: {b' '.join(words).decode()}")
        listed = [*slurm.hosts.enter(host), "ls", "/dev/shm"]
        shared = subprocess.run(listed, capture_output=True, text=True, check=True).stdout
        remains += [f"{host}: {name}" for name in shared.split() if name.startswith("hbmcomm")]
    return remains


def kill(slurm: Cluster, kind: str, process: "subprocess.Popen[str]", pause: float) -> None:
    """Kill something, that long after the first rank runs."""
    _signal(slurm, KINDS["rank"], NOTHING, process)
    time.sleep(pause)
    if kind == "link":
        slurm.hosts.cut(LINK_OF)
    else:
        _signal(slurm, KINDS[kind], signal.SIGKILL, process)


def _signal(
    slurm: Cluster, where: tuple[str, str], number: int, process: "subprocess.Popen[str]"
) -> None:
    host, word = where
    deadline = time.monotonic() + START
    while not slurm.signal(host, word, number):
        assert process.poll() is None and time.monotonic() < deadline, f"no {word} runs"
        time.sleep(0.01)


def ended(slurm: Cluster, process: "subprocess.Popen[str]", out: Path, patience: float) -> float:
    """How long it takes until the command at the login node has ended, and nothing else runs."""
    return seconds_until(lambda: process.poll() is not None and not left(slurm, out), patience)


@pytest.mark.alone
def test_whatever_is_killed_the_job_ends_and_its_campaign_goes_on(slurm: Cluster) -> None:
    draw, out = random.Random(SEED), slurm.folder / "killed"
    process = begin(slurm, out.name, "--mpi", "mpich", blocks=6 * KILLS, aa_pair=True)
    for number in range(KILLS):
        kind = ["link", *KINDS][number % (len(KINDS) + 1)]
        kill(slurm, kind, process, draw.uniform(0, 2))
        seconds = ended(slurm, process, out, LATEST)
        about, stays = f"kill {number + 1} of seed {SEED}, {kind}", left(slurm, out)
        print(f"{about}: nothing runs after {seconds:.1f} s", flush=True)
        assert process.poll() is not None and not stays, f"{about}: {stays}"
        output = "\n".join(process.communicate())
        assert process.returncode == 1 and "--resume" in output, f"{about}: {output}"
        if kind == "slurmd":
            slurm_cluster.start_node(slurm, KINDS[kind][0])
        if kind == "link":
            slurm.hosts.mend(LINK_OF)
        if kind in ("slurmd", "link"):
            slurm_cluster.await_idle(slurm)
        if number + 1 < KILLS:
            process = slurm.begin("./inv", "run", "--resume", "--out", str(out))
    seconds_until(lambda: slurm.run("squeue", "--noheader").stdout == "", LATEST)
    assert slurm.run("squeue", "--noheader").stdout == ""
