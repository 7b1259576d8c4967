"""Ranks, leaders and hosts are lost in the middle of calls: nothing hangs, nothing stays.

HBMCOMM_KILLS times, each loss on three emulated hosts of its own with 1, 2 and 3 ranks. By hand:
    HBMCOMM_KILLS=120 .venv/bin/pytest -s tests/hbmcomm/hierarchical/test_losses.py
Pytest's output has a line for each loss.
"""

import os
import random
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from experiments.emulation.emulated_hosts import Hosts
from experiments.processes import tracking
from tests.awaiting import seconds_until
from tests.starting import MakeHosts, Start

PROGRAM = Path(__file__).parent / "ranks" / "until_a_loss.py"
KILLS = int(os.environ.get("HBMCOMM_KILLS", "3"))
SEED = int(os.environ.get("HBMCOMM_SEED", "1"))
COUNTS = (1, 2, 3)  # ranks of the hosts
RANKS = sum(COUNTS)
LEADERS = (0, 1, 3)
KINDS = ("leader", "host", "link", "rank")
FLAVOURS = ("mpich", "openmpi")
START = 60.0  # seconds until calls work
LATEST = 10.0 if "HBMCOMM_KILLS" in os.environ else 40.0
"""Seconds from a loss until nothing runs any more; a busy machine takes longer."""
SOON = 9.0  # seconds until a host that answers no more is given up
IN_SEND = re.compile(r'Current thread .*\n +File ".*/until_a_loss\.py", line \d+ in send\n')
"""Of a rank that crashed in MPI_Isend: MPICH 5.0.2 reads a request that it does not have where its
connection to another process failed since it looked. A rank looks for losses just before it sends,
which leaves a moment in between."""

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(3600)]


def running(hosts: Hosts) -> set[str]:
    """Names of the ranks that run on any host."""
    names = {tracking.name(pid) for host in hosts.names for pid in hosts.processes(host)}
    return {name for name in names if name.startswith("rank")}


def files(hosts: Hosts, name: str) -> str:
    """The shared-memory files of a host; none of one that is lost."""
    words = [*hosts.enter(name), "ls", str(tracking.SHM)]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout


def lose(hosts: Hosts, kind: str, draw: random.Random) -> str:
    """Lose something of the hosts; what."""
    if kind in ("host", "link"):
        name = draw.choice(hosts.names)
        (hosts.kill if kind == "host" else hosts.cut)(name)
        return name
    followers = [rank for rank in range(RANKS) if rank not in LEADERS]
    victim = f"rank{draw.choice(LEADERS if kind == 'leader' else followers)}"
    processes = set().union(*map(hosts.processes, hosts.names))
    (pid,) = {pid for pid in processes if tracking.name(pid) == victim}
    os.kill(pid, signal.SIGKILL)
    return victim


@pytest.mark.parametrize("number", range(KILLS))
def test_whatever_is_lost_no_rank_hangs_and_nothing_stays(
    hosts: MakeHosts, mpirun_on: Start, tmp_path: Path, number: int
) -> None:
    draw, made = random.Random(f"{SEED}-{number}"), hosts(3)
    kind, mpi = KINDS[number % len(KINDS)], FLAVOURS[number // len(KINDS) % len(FLAVOURS)]

    def log() -> str:
        return (tmp_path / "ranks.log").read_text(errors="replace")

    launch = threading.Thread(
        target=mpirun_on,
        args=(made, made.packed(*COUNTS), PROGRAM, str(tmp_path), str(SEED + number)),
        kwargs={"mpi": mpi, "code": None, "survivors": kind != "host"},
    )
    launch.start()
    try:
        seconds_until(
            lambda: len(list(tmp_path.glob("going-*"))) == RANKS or not launch.is_alive(), START
        )
        assert len(list(tmp_path.glob("going-*"))) == RANKS, log()
        time.sleep(draw.uniform(0, 0.5))
        before = time.time()
        what = lose(made, kind, draw)
        seconds = seconds_until(
            lambda: not running(made) and (kind == "link" or not launch.is_alive()), LATEST
        )
        every = {path.name: path.read_text("utf-8") for path in tmp_path.glob("seen-*")}
        seen = {name: words for name, words in every.items() if words}  # or ended as it wrote
        stay = running(made) | ({"mpiexec"} if launch.is_alive() and kind != "link" else set())
        shared = [name for name in made.names if "hbmcomm" in files(made, name)]
        crashes = [crash for path in tmp_path.glob("crash-*") if (crash := path.read_text("utf-8"))]
    finally:
        made.end()
        launch.join()
    about = f"loss {number} of seed {SEED}: {kind} {what} under {mpi}"
    noticed = [float(words.split()[0]) - before for words in seen.values()]
    print(
        f"{about}: {len(seen)} ranks saw it after {max(noticed, default=0):.1f} s at most, "
        f"all ended after {seconds:.1f} s",
        flush=True,
    )
    assert not stay, f"{about}: {stay} still run after {LATEST} s: {seen}"
    assert not shared, f"{about}: {shared}"
    assert all(" PeerError: " in words for words in seen.values()), f"{about}: {seen}"
    if kind == "link":
        assert len(seen) == RANKS and max(noticed) < SOON, f"{about}: {seen}"
    if mpi == "mpich":  # Open MPI's TCP itself ends ranks that were connected with a lost one
        assert seen or crashes or kind == "host", f"{about}: {log()}"
        assert all(map(IN_SEND.search, crashes)), f"{about}: {crashes}"
        for word in ("Traceback", *(() if crashes else ("Segmentation", "SIGNAL: 11"))):
            assert word not in log(), f"{about}: {log()}"
