"""Rank program: one rank ends in the middle of random collectives; the others must learn of it.

The calls are blocking, nonblocking (several in flight, completed by our waits or by MPI's) and
persistent.

Usage: direct_death.py TRANSPORT SEED FOLDER. The seed says who ends, how and when. The empty folder
gets the moment and what each other rank saw, best "PeerError after ... s"; it then leaves without
MPI's own end, which would wait for the lost rank.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

import numpy as np
from attempt import Attempt
from drawn import draw
from flights import Flight, Interrupter, complete
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


def note(moment: float) -> None:
    """Written whole: survivors read it at once."""
    new = FOLDER / "new"
    new.write_text(repr(moment), encoding="ascii")
    new.rename(FOLDER / "moment")


def report(words: str) -> NoReturn:
    """In a file, since a launcher that has lost a rank may lose output; leave with the others,
    since it may end them all once a second rank is gone."""
    (FOLDER / f"rank{RANK}").write_text(words, encoding="utf-8")
    until = time.monotonic() + GIVE_UP
    while len(list(FOLDER.glob("rank*"))) < RANKS - 1 and time.monotonic() < until:
        time.sleep(0.01)
    os._exit(0)


def kill_me_later(rng: np.random.Generator) -> None:
    """From outside, wherever this rank may then be."""
    delay = rng.uniform(0.01, 0.3)
    subprocess.Popen(["/bin/sh", "-c", f"sleep {delay:.3f}; kill -9 $PPID"])
    note(time.monotonic() + delay)


def end(how: str) -> None:
    note(time.monotonic())
    if how == "_exit":
        os._exit(3)
    signal.alarm(STUCK)
    if how == "raise":
        raise RuntimeError("as planned")
    sys.exit(0)


def run(comm: Communicator, seed: int) -> None:
    """Random calls, until a rank ends: by itself after some of them, or killed."""
    rng = np.random.default_rng([seed, RANKS])
    victim, how, last = int(rng.integers(RANKS)), str(rng.choice(WAYS)), int(rng.integers(1, 400))
    large = float(rng.choice([0, 0.1, 0.5]))
    attempts = [Attempt(draw(rng, RANKS, "direct", large), comm) for _ in range(PREPARED)]
    comm.Barrier()
    own = np.random.default_rng([seed, RANK])
    if victim == RANK and how == "killed":
        kill_me_later(own)
    began, number = time.monotonic(), 0
    while time.monotonic() - began < GIVE_UP:
        number += 1
        if victim == RANK and how != "killed" and number == last:
            end(how)
        if own.random() < 0.05:
            time.sleep(own.uniform(0, 0.002))
        if rng.random() < 0.6:
            attempts[int(rng.integers(PREPARED))].run()
        else:
            chosen = rng.permutation(PREPARED)[: int(rng.integers(1, AT_ONCE + 1))]
            run_at_once([attempts[index] for index in chosen], own, comm)


def run_at_once(attempts: list[Attempt], own: np.random.Generator, comm: Communicator) -> None:
    """Start some calls, then complete them in any order and way."""
    for attempt in attempts:
        attempt.fill()
    flights = [Flight(attempt.start(), lambda: None) for attempt in attempts]
    try:
        complete(flights, own, INTERRUPTER)
    except MPI.Exception:  # from a wait of MPI's, which knows no more than that one has failed
        comm.Barrier()
        raise


def survive(comm: Communicator, seed: int) -> NoReturn:
    try:
        run(comm, seed)
    except hbmcomm.PeerError as error:
        told = time.monotonic()
        try:
            comm.Barrier()
        except hbmcomm.PeerError as again:
            refused = time.monotonic() - told
            told -= float((FOLDER / "moment").read_text(encoding="ascii"))
            report(f"PeerError after {max(told, refused):.3f} s: {error} / {again}")
        report(f"a Barrier after the error: {error}")
    except hbmcomm.HbmcommError as error:
        report(f"{type(error).__name__}: {error}")
    report("nothing seen")


if __name__ == "__main__":
    transport, drawn_seed, folder = sys.argv[1:]
    FOLDER, INTERRUPTER = Path(folder), Interrupter()
    ours = Communicator(WORLD, "regular", transport)  # global: it lives as long as the process
    survive(ours, int(drawn_seed))
