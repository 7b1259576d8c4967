"""Rank program: a bench in which one contender leaves one element wrong on one rank."""

import sys
from pathlib import Path
from typing import Any

from experiments.programs import harness
from experiments.programs.contenders import contender as contenders
from experiments.programs.contenders import entrants
from experiments.programs.contenders.contender import Contender
from experiments.programs.measure.ready import Ready


def spoilt(make: Any) -> Any:
    def remake(comm: Any) -> Contender:
        honest = make(comm)

        def contender(operation: str, send: Any, recv: Any) -> Ready | None:
            ready = honest(operation, send, recv)
            if operation == "copy" or comm.rank == 0:
                return ready

            def collect() -> None:
                ready.collect()
                recv[-1] += 1

            return Ready(ready.call, collect, ready.close)

        return contender

    return remake


folder, whose = Path(sys.argv[1]), sys.argv[2]
if whose == "direct":
    entrants.plain = spoilt(contenders.plain)
else:
    entrants.pickled = spoilt(contenders.pickled)
harness.run(folder)
