"""Rank program: ranks end in the middle of random collectives, one after the other; the others must
learn of each.

The calls are blocking, nonblocking (several in flight, completed by our waits or by MPI's) and
persistent. Every round has a communicator of its own, made before the first rank ends: of the ranks
that are left then. All but the last are killed.

Usage: deaths.py TRANSPORT SEED FOLDER. The seed says which rank ends, how and when. The empty
folder gets the moment of each round, and what each other rank saw: best "PeerError at ...", and
since when it had been in calls, outside of which it sees nothing. The last rank leaves
without MPI's own end, which would wait for the lost ones.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from drawn.attempt import Attempt
from drawn.calls import draw
from drawn.flights import Flight, Interrupter, complete
from mpi4py import MPI

import hbmcomm
from hbmcomm import Communicator

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size
WAYS = ("killed", "killed", "killed", "killed", "_exit", "raise", "return")
PREPARED = 16  # calls, drawn from again and again
AT_ONCE = 4  # in flight, at most
GIVE_UP = 10.0  # seconds after which a survivor that has seen nothing reports that
STUCK = 3  # seconds until a rank that ended by itself is killed while MPI waits for the others


def now() -> float:
    """The clock of /proc/uptime."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Timed(Attempt):
    """Notes when this process last made memory ready for a call."""

    ready = 0.0

    def fill(self) -> None:
        super().fill()
        Timed.ready = now()


def report(turn: int, words: str) -> None:
    """In a file, since a launcher that has lost a rank may lose output."""
    (FOLDER / f"round{turn}-rank{RANK}").write_text(words, encoding="utf-8")


def kill_me_later(turn: int, rng: np.random.Generator) -> None:
    """From outside, wherever this rank may then be; the process that kills it notes the moment."""
    kill = 'sleep "$1"; read -r now idle </proc/uptime; echo "$now" >"$2"; kill -9 $PPID'
    delay, moment = f"{rng.uniform(0.01, 0.3):.3f}", str(FOLDER / f"moment{turn}")
    subprocess.Popen(["/bin/sh", "-c", kill, "sh", delay, moment])


def end(turn: int, how: str) -> None:
    (FOLDER / f"moment{turn}").write_text(repr(now()), encoding="ascii")
    if how == "_exit":
        os._exit(3)
    signal.alarm(STUCK)
    if how == "raise":
        raise RuntimeError("as planned")
    sys.exit(0)


def run(comm: Communicator, is_victim: bool, turn: int, seed: int) -> None:
    """Random calls, until one rank of a communicator ends: by itself or killed."""
    rng, ranks = np.random.default_rng([seed, turn]), comm.size
    last = int(rng.integers(1, 400))
    how = "killed" if ranks > 2 else str(rng.choice(WAYS))
    large = float(rng.choice([0, 0.1, 0.5] if ranks < RANKS else [0, 0.1]))
    attempts = [Timed(draw(rng, ranks, "direct", large), comm) for _ in range(PREPARED)]
    comm.Barrier()
    own = np.random.default_rng([seed, turn, RANK])
    if is_victim and how == "killed":
        kill_me_later(turn, own)
    began, number = time.monotonic(), 0
    while time.monotonic() - began < GIVE_UP:
        number += 1
        if is_victim and how != "killed" and number == last:
            end(turn, how)
        if own.random() < 0.05:
            time.sleep(own.uniform(0, 0.002))
        if rng.random() < 0.6:
            attempts[int(rng.integers(PREPARED))].run()
        else:
            chosen = rng.permutation(PREPARED)[: int(rng.integers(1, AT_ONCE + 1))]
            run_at_once([attempts[index] for index in chosen], own, comm)


def run_at_once(attempts: list[Timed], own: np.random.Generator, comm: Communicator) -> None:
    """Start some calls, then complete them in any order and way."""
    for attempt in attempts:
        attempt.fill()
    flights = [Flight(attempt.start(), lambda: None) for attempt in attempts]
    try:
        complete(flights, own, INTERRUPTER)
    except MPI.Exception:  # from a wait of MPI's, which knows no more than that one has failed
        comm.Barrier()
        raise


def survive(comm: Communicator, is_victim: bool, turn: int, seed: int) -> bool:
    """Whether this rank saw what it must."""
    try:
        run(comm, is_victim, turn, seed)
    except hbmcomm.PeerError as error:
        seen = now()
        try:
            comm.Barrier()
        except hbmcomm.PeerError as again:
            times = f"at {seen:.3f} and {now():.3f}, in calls since {Timed.ready:.3f}"
            report(turn, f"PeerError {times}: {error} / {again}")
            return True
        report(turn, f"a Barrier after the error: {error}")
    except hbmcomm.HbmcommError as error:
        report(turn, f"{type(error).__name__}: {error}")
    else:
        report(turn, "nothing seen")
    return False


def shrinking(seed: int) -> list[tuple[Communicator, bool]]:
    """Communicators of all ranks, all but one, and so on down to two, each in an order of its own;
    and whether this rank ends on it."""
    rng = np.random.default_rng(seed)
    mine = int(rng.permutation(RANKS)[RANK])
    comms = []
    for left in range(RANKS, 1, -1):
        keys = rng.permutation(RANKS)
        part = WORLD.Split(0 if mine < left else MPI.UNDEFINED, int(keys[RANK]))
        if part != MPI.COMM_NULL:
            comms.append((Communicator(part, "regular", TRANSPORT), mine == left - 1))
    return comms


if __name__ == "__main__":
    TRANSPORT, drawn_seed, folder = sys.argv[1:]
    FOLDER, INTERRUPTER = Path(folder), Interrupter()
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # by which MPICH's launcher announces a death
    ours = shrinking(int(drawn_seed))  # global: they live as long as the process
    for number, (comm, ends) in enumerate(ours):
        if not survive(comm, ends, number, int(drawn_seed)):
            break
    os._exit(0)
