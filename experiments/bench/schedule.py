"""A question -> randomised blocks of launches, one of each MPI. Pure: one seed, one schedule."""

import random
from dataclasses import asdict, dataclass
from typing import Any

from experiments.bench.names import GLOO, MPI_ITSELF, PICKLE
from experiments.bench.question import DTYPE, Question
from experiments.bound import BARRIER
from experiments.spec import Measurement


@dataclass(frozen=True)
class Launch:
    """One start of one MPI; everything that is compared in it is compared within it.

    Attributes:
        flavour: the MPI that starts it.
        peers: whom direct meets in it: "mpi", which is the flavour itself, "pickle", "gloo".
        cells: (operation, bytes) in the order in which they are measured.
        seed: of the order in which contenders take turns.
    """

    block: int
    flavour: str
    ranks: int
    private: bool
    peers: tuple[str, ...]
    cells: tuple[tuple[str, int], ...]
    seed: int
    measurement: Measurement
    dtype: str = DTYPE

    @property
    def name(self) -> str:
        """Names the launch within its bench: 0003-mpich."""
        return f"{self.block:04d}-{self.flavour}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as its ranks read them."""
        return asdict(self)

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "Launch":
        """The inverse of to_dict."""
        return Launch(
            **values
            | {"peers": tuple(values["peers"])}
            | {"cells": tuple((operation, size) for operation, size in values["cells"])}
            | {"measurement": Measurement(**values["measurement"])}
        )


def schedule(question: Question, seed: int) -> tuple[Launch, ...]:
    """All launches, in the order in which they run: in each block every MPI once, in random order.

    Each replicate visits every rank count once, so that a drift of the machine meets all alike.
    """
    rng = random.Random(seed)
    launches: list[Launch] = []
    block = 0
    for _ in range(question.blocks):
        for ranks in rng.sample(question.ranks, len(question.ranks)):
            for flavour in rng.sample(question.flavours, len(question.flavours)):
                launches.append(_launch(question, block, flavour, ranks, rng))
            block += 1
    return tuple(launches)


def _launch(question: Question, block: int, flavour: str, ranks: int, rng: random.Random) -> Launch:
    cells = [
        (operation, size)
        for operation in question.operations
        for size in ((0,) if operation == BARRIER else question.sizes)
    ]
    rng.shuffle(cells)
    others = tuple(peer for peer in question.peers if peer in (PICKLE, GLOO))
    return Launch(
        block=block,
        flavour=flavour,
        ranks=ranks,
        private=question.private,
        peers=(*((MPI_ITSELF,) if flavour in question.peers else ()), *others),
        cells=tuple(cells),
        seed=rng.getrandbits(32),
        measurement=question.measurement,
    )
