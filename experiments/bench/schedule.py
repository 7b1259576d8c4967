"""A question -> randomised blocks of launches. Pure: one seed, one schedule.

A block holds one launch of each MPI in each of its settings, since a setting is an environment.
"""

import random
from dataclasses import asdict, dataclass
from typing import Any

from experiments.bench.names import GLOO, MPI_ITSELF, NONBLOCKING, OTHER_BUILD, PICKLE
from experiments.bench.question import DTYPE, USUAL_FORMS, Question
from experiments.bench.settings import DEFAULT, runs_nonblocking, settings
from experiments.bound import BARRIER
from experiments.spec import Measurement


@dataclass(frozen=True)
class LeftOut:
    """What a contender does not do in a launch, because it hung or crashed there before.

    Attributes:
        bytes: None: messages of any size.
        why: "exit code 139", "stood still for 60 s".
    """

    contender: str
    form: str
    operation: str
    bytes: int | None
    why: str

    def covers(self, contender: str, form: str, operation: str, size: int) -> bool:
        """Whether that is left out."""
        return (self.contender, self.form, self.operation) == (contender, form, operation) and (
            self.bytes in (None, size)
        )


@dataclass(frozen=True)
class Launch:
    """One start of one MPI; everything that is compared in it is compared within it.

    Attributes:
        flavour: the MPI that starts it.
        setting: of that MPI, as experiments.bench.settings names it.
        peers: whom direct meets in it: "mpi", which is the flavour itself, "pickle", "gloo",
            "other-build".
        cells: (operation, bytes) in the order in which they are measured.
        seed: of the order in which contenders take turns.
        without: what contenders have to leave out.
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
    setting: str = DEFAULT
    forms: tuple[str, ...] = USUAL_FORMS
    without: tuple[LeftOut, ...] = ()

    @property
    def name(self) -> str:
        """Names the launch within its bench: 0003-mpich, 0003-openmpi-ucx-sm."""
        setting = "" if self.setting == DEFAULT else f"-{self.setting}"
        return f"{self.block:04d}-{self.flavour}{setting}"

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
            | {"forms": tuple(values["forms"])}
            | {"without": tuple(LeftOut(**each) for each in values["without"])}
        )


def schedule(question: Question, seed: int) -> tuple[Launch, ...]:
    """All launches, in the order in which they run: in each block all, in random order.

    Each replicate visits every rank count once, so that a drift of the machine meets all alike.
    """
    rng = random.Random(seed)
    arms = [
        (flavour, setting)
        for flavour in question.flavours
        for setting in settings(flavour, question.tuned and flavour in question.peers)
        if _forms(question, flavour, setting)
    ]
    launches: list[Launch] = []
    block = 0
    for _ in range(question.blocks):
        for ranks in rng.sample(question.ranks, len(question.ranks)):
            for flavour, setting in rng.sample(arms, len(arms)):
                launches.append(_launch(question, block, flavour, setting, ranks, rng))
            block += 1
    return tuple(launches)


def _launch(
    question: Question, block: int, flavour: str, setting: str, ranks: int, rng: random.Random
) -> Launch:
    cells = [
        (operation, size)
        for operation in question.operations
        for size in ((0,) if operation == BARRIER else question.sizes)
    ]
    rng.shuffle(cells)
    peers = [MPI_ITSELF] if flavour in question.peers else []
    if setting == DEFAULT:  # once beside each MPI is enough for those that are none
        peers += [peer for peer in question.peers if peer in (PICKLE, GLOO)]
    if question.against:
        peers.append(OTHER_BUILD)
    return Launch(
        block=block,
        flavour=flavour,
        ranks=ranks,
        private=question.private,
        peers=tuple(peers),
        cells=tuple(cells),
        seed=rng.getrandbits(32),
        measurement=question.measurement,
        setting=setting,
        forms=_forms(question, flavour, setting),
    )


def _forms(question: Question, flavour: str, setting: str) -> tuple[str, ...]:
    """Those that direct does itself."""
    served = runs_nonblocking(flavour, setting)
    return tuple(form for form in question.forms if served or form != NONBLOCKING)
