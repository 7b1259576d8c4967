"""Random sequences of calls over several communicators, and orders of them that MPI allows.

A sequence is cut into segments. In a segment every rank starts the same calls, and makes the same
one call that may block, in any order that keeps the order of each communicator; it waits only for
what was started in earlier segments. So nobody waits for a rank that waits for it in turn.
"""

from dataclasses import dataclass

from numpy.random import Generator

MESSAGES = -1
"""In the place of a communicator: messages between two ranks, which have no order."""
PLANS = 3  # per communicator


@dataclass(frozen=True)
class Event:
    """What a rank does on a communicator, given by its number.

    action: "call" blocks; "start" is a nonblocking call; "make" replaces a plan, "run" runs it,
    "begin" starts it; "message" is between two ranks of MPI.
    """

    action: str
    comm: int
    number: int
    plan: int = 0


def segments(rng: Generator, first: int, comms: int, count: int) -> list[list[Event]]:
    """Some segments, of events with numbers from `first` on; the same for the same draws."""
    found, number = [], first
    for _ in range(count):
        segment = _segment(rng, number, comms)
        found.append(segment)
        number += len(segment)
    return found


def _segment(rng: Generator, first: int, comms: int) -> list[Event]:
    events: list[Event] = []
    used: set[tuple[int, int]] = set()  # a plan that was started is not complete in this segment
    blocking = int(rng.integers(0, 6))
    for index in range(int(rng.integers(1, 7))):
        if index == blocking:
            actions = ["call", "call", "make", "run"]
        else:
            actions = ["start", "start", "begin", "message"]
        action, comm = str(rng.choice(actions)), int(rng.integers(comms))
        plan = int(rng.integers(PLANS))
        if action in ("make", "run", "begin") and (comm, plan) in used:
            action = "call" if index == blocking else "start"
        if action in ("make", "run", "begin"):
            used.add((comm, plan))
        events.append(Event(action, MESSAGES if action == "message" else comm, first + index, plan))
    return events


def reordered(rng: Generator, segment: list[Event]) -> list[Event]:
    """The events of a segment in another order that MPI allows."""
    queues: dict[int, list[Event]] = {}
    for event in segment:
        key = event.comm if event.comm != MESSAGES else -1 - event.number
        queues.setdefault(key, []).append(event)
    left = list(queues.values())
    found = []
    while left:
        queue = left[int(rng.integers(len(left)))]
        found.append(queue.pop(0))
        left = [each for each in left if each]
    return found
