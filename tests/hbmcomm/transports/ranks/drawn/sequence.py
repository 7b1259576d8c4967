"""Random sequences of calls over several communicators, and orders of them that MPI allows.

A sequence is cut into segments. In a segment every rank starts the same calls, and makes the same
one call that may block, in any order that keeps the order of each communicator; it waits only for
what was started in earlier segments, or before on the same communicator. So nobody waits for a rank
that waits for it in turn. Communicators are in slots; a slot is empty between the event that leaves
its communicator and one that makes another.
"""

from dataclasses import dataclass, field

from numpy.random import Generator

MESSAGES = -1
"""In the place of a communicator: messages between two ranks, which have no order."""
WORLD = -2
"""In the place of a communicator: MPI.COMM_WORLD, or many communicators of all ranks."""
PLANS = 3  # per communicator
BLOCKING = 0.85  # of the segments have an event that may block
SLOTS = 5  # at most
DERIVATIONS = ("wrapped", "wrapped", "dup", "parity", "first", "reversed", "self", "mpi")
"""How a communicator is made of another; the last two need none."""


@dataclass(frozen=True)
class Event:
    """What a rank does on the communicator of a slot, given by its number.

    action: "call" blocks; "start" is a nonblocking call; "make" replaces a plan, "run" runs it,
    "begin" starts it; "message" is between two ranks of MPI; "objects" and "late objects" are
    lower-case calls; "new" makes the communicator of a slot, "leave" is the last call on it; "many"
    has many calls in flight, "threads" makes calls in several threads.
    """

    action: str
    comm: int
    number: int
    plan: int = 0
    parent: int = WORLD
    derivation: str = ""


@dataclass
class Slots:
    """Which slots have a communicator after the events so far."""

    filled: list[int] = field(default_factory=list)
    number: int = 0

    def next(self) -> int:
        self.number += 1
        return self.number


def segments(rng: Generator, features: frozenset[str], count: int) -> list[list[Event]]:
    """Some segments after those that make the first communicators; equal for equal draws."""
    slots = Slots()
    result = [[_new(rng, slots, slot)] for slot in range(int(rng.integers(2, SLOTS)))]
    return result + [_segment(rng, features, slots) for _ in range(count)]


def _new(rng: Generator, slots: Slots, slot: int) -> Event:
    derivation = str(rng.choice(DERIVATIONS)) if slots.filled else "wrapped"
    parent = int(rng.choice(slots.filled)) if slots.filled and derivation != "wrapped" else WORLD
    slots.filled.append(slot)
    return Event("new", slot, slots.next(), parent=parent, derivation=derivation)


def _segment(rng: Generator, features: frozenset[str], slots: Slots) -> list[Event]:
    if len(slots.filled) < 2 or (len(slots.filled) < SLOTS and rng.random() < 0.25):
        empty = [slot for slot in range(SLOTS) if slot not in slots.filled]
        return [_new(rng, slots, int(rng.choice(empty)))]
    events: list[Event] = []
    used: set[tuple[int, int]] = set()  # a plan that was started is not complete in this segment
    blocking, others = _actions(features)
    number, left = int(rng.integers(1, 6)), None
    position = int(rng.integers(number)) if rng.random() < BLOCKING else None
    for index in range(number):
        is_blocking = index == position
        if not is_blocking and not others:
            continue
        action = str(rng.choice(blocking if is_blocking else others))
        comm = int(rng.choice([slot for slot in slots.filled if slot != left]))
        plan = int(rng.integers(PLANS))
        if action in ("make", "run", "begin"):
            if (comm, plan) in used:
                continue
            used.add((comm, plan))
        if action == "leave":
            if len(slots.filled) < 2:
                action = "call"
            else:
                left = comm
        where = {"message": MESSAGES, "many": WORLD, "threads": WORLD}.get(action, comm)
        events.append(Event(action, where, slots.next(), plan))
    if left is not None:
        slots.filled.remove(left)
    return events


def _actions(features: frozenset[str]) -> tuple[list[str], list[str]]:
    """The actions to choose from, which may block and which do not."""
    blocking, others = ["call"] * 6, ["message"]
    if "persistent" in features:
        blocking += ["make", "run"] * 2
        others += ["begin"] * 2
    if features & {"freed", "dropped", "errors"}:
        blocking += ["leave"] * 4
    if "objects" in features:
        blocking += ["objects"] * 2
    if "late_objects" in features:
        blocking += ["late objects"]
    if "many_in_flight" in features:
        blocking += ["many"]
    if "threads" in features:
        blocking += ["threads"] * 2
    if "nonblocking" in features:
        others += ["start"] * 3
    if "messages" not in features:
        others.remove("message")
    return blocking, others


def reordered(rng: Generator, segment: list[Event]) -> list[Event]:
    """The events of a segment in another order that MPI allows."""
    queues: dict[int, list[Event]] = {}
    for event in segment:
        key = event.comm if event.comm != MESSAGES else -1000 - event.number
        queues.setdefault(key, []).append(event)
    left = list(queues.values())
    result = []
    while left:
        queue = left[int(rng.integers(len(left)))]
        result.append(queue.pop(0))
        left = [events for events in left if events]
    return result
