"""Expected time of a collective on a described machine, from the stores and reads of its ranks.

Contains machines and the times of their cache lines, and no algorithm. docs/costs.md explains the
model and names the source of each parameter.
"""

import heapq
from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal, NamedTuple

LINE = 64
INLINE = 16  # bytes of a message that travel in the line of its flag


class Place(NamedTuple):
    package: int
    node: int
    cache: int


def distance(a: Place, b: Place) -> int:
    """0: same last-level cache, 1: same node, 2: same package, 3: other package."""
    if a == b:
        return 0
    return 1 if a[:2] == b[:2] else 2 if a.package == b.package else 3


@dataclass(frozen=True)
class Machine:
    """Times in ns, bandwidths in bytes per ns (GB/s), 0 where nothing limits.

    Attributes:
        latency: time until a core has a line that another core has just modified, by distance.
        polls: flags of different ranks that a core fetches at once.
        flight: lines of a message that a core fetches at once.
        service: readers of one line get it one by one, each after this part of the latency.
        cache_link: bandwidth between a last-level cache and the rest of the machine, each way.
        package_link: bandwidth between a package and the others, each way.
        has_l3: whether its last-level caches are level 3.
    """

    latency: tuple[float, float, float, float]
    polls: float
    flight: float
    service: float = 0.37
    cache_link: float = 0.0
    package_link: float = 0.0
    has_l3: bool = True


MACHINES = {
    "KNL SNC-4": Machine((41, 91, 91, 0), polls=2, flight=12, cache_link=109, has_l3=False),
    "two Xeon Max SNC-4": Machine((51, 51, 65, 108), polls=8, flight=16, package_link=128),
    "GH200": Machine((46, 46, 0, 0), polls=1, flight=32),
    "EPYC, 16 L3": Machine((26, 115, 0, 0), polls=6, flight=24, cache_link=50),
    "EPYC, L3 as node": Machine((26, 115, 115, 0), polls=6, flight=24, cache_link=50),
}


class Event(NamedTuple):
    """`store`: the rank stores its own word; `read`: it reads a word of another rank, once that has
    `value` or more; `data`, `write`: it reads or writes `value` bytes in another rank's memory."""

    kind: Literal["store", "read", "data", "write"]
    rank: int
    word: Hashable
    value: int


@dataclass(eq=False)
class Call:
    """The events of each rank in one call, in order."""

    places: list[Place]
    events: list[list[Event]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.events = self.events or [[] for _ in self.places]

    def store(self, rank: int, word: Hashable) -> None:
        self.events[rank].append(Event("store", rank, word, 1))

    def read(self, rank: int, owner: int, word: Hashable) -> None:
        self._add(rank, Event("read", owner, word, 1))

    def data(self, rank: int, source: int, size: int) -> None:
        self._add(rank, Event("data", source, None, size))

    def write(self, rank: int, to: int, size: int) -> None:
        self._add(rank, Event("write", to, None, size))

    def _add(self, rank: int, event: Event) -> None:
        if event.rank != rank and event.value:
            self.events[rank].append(event)


class _Replay:
    """Ranks advance in the order of their clocks; one that reads a word not yet stored waits."""

    def __init__(self, call: Call, machine: Machine) -> None:
        self.call, self.machine = call, machine
        self.distances = [[distance(a, b) for b in call.places] for a in call.places]
        self.clock = [0.0] * len(call.places)
        self.at = [0] * len(call.places)
        self.stores: dict[tuple[int, Hashable], list[tuple[int, float]]] = defaultdict(list)
        self.last_value: dict[tuple[int, Hashable], int] = {}
        self.served: dict[tuple[int, Hashable], float] = {}
        self.cached: dict[tuple[int, int, Hashable], int] = {}
        self.waiting: dict[tuple[int, Hashable], list[int]] = defaultdict(list)
        for rank, events in enumerate(call.events):
            for e in events:
                if e.kind == "store":
                    key = rank, e.word
                    self.last_value[key] = max(e.value, self.last_value.get(key, 0))

    def _read(self, rank: int, e: Event) -> bool:
        """Whether the word is stored; if so, the clock advances to when this rank has it."""
        key, m, d = (e.rank, e.word), self.machine, self.distances[rank][e.rank]
        stores = self.stores[key]
        if self.cached.get((rank, *key)) == len(stores) > 0:
            return True
        now = self.clock[rank] + m.latency[d] / m.polls
        if self.last_value.get(key, 0) >= e.value:  # else an earlier call stored it
            written = next((time for value, time in stores if value >= e.value), None)
            if written is None:
                return False
            now = max(now, written + m.latency[d])
            if key in self.served:
                now = max(now, self.served[key] + m.service * m.latency[d])
            self.served[key] = now
        self.cached[(rank, *key)] = len(stores)
        self.clock[rank] = now
        return True

    def _move(self, rank: int, e: Event) -> None:
        """Lines are pipelined; the first line after a flag takes a latency of its own."""
        if e.value <= INLINE:
            return
        latency = self.machine.latency[self.distances[rank][e.rank]]
        lines = -(-e.value // LINE)
        events, at = self.call.events[rank], self.at[rank]
        begins = at == 0 or events[at - 1].kind not in ("data", "write")
        if begins and e.kind == "data":
            self.clock[rank] += latency
            lines -= 1
        self.clock[rank] += lines * latency / self.machine.flight

    def run(self) -> float:
        ready = [(0.0, rank) for rank in range(len(self.clock))]
        while ready:
            _, rank = heapq.heappop(ready)
            for at in range(self.at[rank], len(self.call.events[rank])):
                e = self.call.events[rank][at]
                self.at[rank] = at
                if e.kind == "read":
                    if self._read(rank, e):
                        self.at[rank] += 1
                        heapq.heappush(ready, (self.clock[rank], rank))
                    else:
                        self.waiting[(e.rank, e.word)].append(rank)
                    break
                if e.kind == "store":
                    self.stores[(rank, e.word)].append((e.value, self.clock[rank]))
                    for other in self.waiting.pop((rank, e.word), ()):
                        heapq.heappush(ready, (self.clock[other], other))
                else:
                    self._move(rank, e)
        if any(self.waiting.values()):
            raise ValueError("ranks wait for words that no rank stores")
        return max(self.clock)


def _link_time(call: Call, domains: Iterable[Hashable], bandwidth: float) -> float:
    """Time of the domain that most bytes enter or leave."""
    of = list(domains)
    crossing: dict[tuple[Hashable, str], int] = defaultdict(int)
    for rank, events in enumerate(call.events):
        for e in events:
            if e.kind in ("data", "write") and of[rank] != of[e.rank]:
                source, target = (e.rank, rank) if e.kind == "data" else (rank, e.rank)
                crossing[of[source], "out"] += e.value
                crossing[of[target], "in"] += e.value
    return max(crossing.values(), default=0) / bandwidth if bandwidth else 0.0


@cache
def _replayed(call: Call, machine: Machine) -> float:
    return _Replay(call, machine).run()


def expected_time(call: Call, machine: Machine) -> float:
    """ns from the moment when all ranks begin until the last one has completed the call."""
    return max(
        _replayed(call, replace(machine, cache_link=0, package_link=0)),
        _link_time(call, call.places, machine.cache_link),
        _link_time(call, (p.package for p in call.places), machine.package_link),
    )
