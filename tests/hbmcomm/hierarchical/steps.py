"""The steps of the core's algorithms between hosts, as values of Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from hbmcomm.transports.native import ffi, lib

Range = tuple[int, int]


class Message(NamedTuple):
    """A range of entries, to or from another host."""

    host: int
    entries: Range


class Step(NamedTuple):
    """Messages that one host sends and receives at the same time."""

    sends: tuple[Message, ...] = ()
    receives: tuple[Message, ...] = ()
    folds: bool = False
    answered: bool = False


Steps = list[Step]
Algorithm = Callable[[int, int, int], Steps]
"""The steps of a host from its number, the number of hosts, and the number of entries."""


def steps(
    number: int,
    host: int,
    hosts: int,
    count: int,
    root: int = 0,
    pieces: Sequence[Range] = (),
) -> Steps:
    """Those of a host by an algorithm of the core, without empty ones."""
    fields = {"algorithm": number, "host": host, "hosts": hosts, "root": root, "count": count}
    ranges = ffi.new("hbm_range[]", [*pieces])
    if pieces:
        fields["pieces"] = ranges
    schedule, step = ffi.new("hbm_schedule *", fields), ffi.new("hbm_step *")
    plan, joined = Steps(), Step()
    index = 0
    while lib.hbm_step_of(schedule, index, step):
        index += 1
        joined = Step(
            joined.sends + _messages(step.to, step.sent),
            joined.receives + _messages(step.__getattribute__("from"), step.received),
            joined.folds or bool(step.reduces and _messages(0, step.received)),
            bool(step.answered),
        )
        if not step.joined:
            if joined.sends or joined.receives:
                plan.append(joined)
            joined = Step()
    return plan


def _messages(host: int, entries: object) -> tuple[Message, ...]:
    begin, end = entries.begin, entries.end  # type: ignore[attr-defined]
    return (Message(host, (begin, end)),) if host >= 0 and begin < end else ()


def algorithm(name: str, **more: object) -> Algorithm:
    """An algorithm by its name in the core, without HBM_."""
    return partial(steps, getattr(lib, f"HBM_{name}"), **more)  # type: ignore[arg-type]
