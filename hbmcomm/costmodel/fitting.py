"""Parameters of a model from measured times: least squares on the relative error, none below 0.

A model has one algorithm for short messages and one for long ones. Which two, where messages begin
to be long, how much of the caches counts, and which parameters it has, is chosen by the Bayesian
information criterion (Schwarz, Ann. Stat. 6 (1978) 461): a parameter must be worth its freedom.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hbmcomm.costmodel.counts import ALGORITHMS, Counting
from hbmcomm.costmodel.machine import CostModelError, Machine
from hbmcomm.costmodel.model import Model, Parameters, Part, parts_of_a_time
from hbmcomm.costmodel.shared import SHARED

Numbers = NDArray[np.float64]

SHARED_MEMORY = "shared"
"""The algorithm of transport direct, as models name it."""
LEAST = 3
"""Samples that parameters are fitted to at least."""
NOISE = 0.02
"""Relative error below which a better fit is luck."""
ROUNDING = 1e-6
"""What a machine's arithmetic may make of two equal criteria, or of a weight that is 0."""
CACHES = tuple(2.0**power for power in range(0, -9, -1))
"""Shares of the caches that are tried: what ranks keep there between two calls. The first, all of
it, where the times do not decide."""


class Sample(NamedTuple):
    """A measured time: of a call of all ranks, each with a message of so many bytes."""

    ranks: int
    nbytes: int
    seconds: float


class _Part(NamedTuple):
    """What some samples are explained by, and how well."""

    squares: float
    freedom: int
    part: Part


def algorithms(operation: str, shared: bool) -> Mapping[str, Counting]:
    """What can be fitted to an operation: of transport direct, or of ranks that send messages.

    Raises:
        CostModelError: no algorithm of the operation is known.
    """
    if operation not in SHARED:
        raise CostModelError(
            f"no cost model knows operation {operation!r}; name one of {', '.join(SHARED)}"
        )
    return {SHARED_MEMORY: SHARED[operation]} if shared else ALGORITHMS[operation]


def fit(
    operation: str,
    samples: Sequence[Sample],
    machine: Machine,
    *,
    shared: bool,
    kind: str = "regular",
    only: str = "",
) -> Model:
    """The model that explains measured times best.

    Args:
        samples: at least LEAST, of two lengths or more.
        machine: where they were measured.
        shared: transport direct made the calls; else ranks that send messages, by any algorithm.
        kind: of the memory that the messages are in.
        only: the algorithm, where it is known.

    Raises:
        CostModelError: too few samples, no bytes, a time that is not above 0, an unknown name.
    """
    known = algorithms(operation, shared)
    if only and only not in known:
        raise CostModelError(
            f"{operation} has no algorithm {only!r} here; name one of {', '.join(known)}"
        )
    sizes = sorted({sample.nbytes for sample in samples})
    if len(samples) < LEAST or len(sizes) < 2:
        raise CostModelError(
            f"{len(samples)} times of {len(sizes)} lengths were given for {operation}; measure at "
            f"least {LEAST} times, and 2 lengths"
        )
    for sample in samples:
        if sample.ranks < 2 or sample.nbytes < 1 or not 0 < sample.seconds < math.inf:
            raise CostModelError(
                f"{sample} is not a time of a collective: give 2 ranks or more, at least 1 byte, "
                "and a time above 0 s"
            )
    chosen = {only: known[only]} if only else known
    candidates = [
        candidate
        for share in CACHES
        for candidate in _candidates(samples, chosen, machine, kind, share)
    ]
    best = first_least([criterion for criterion, _ in candidates])
    return candidates[best][1]._replace(operation=operation)


def _candidates(
    samples: Sequence[Sample],
    chosen: Mapping[str, Counting],
    machine: Machine,
    kind: str,
    share: float,
) -> Iterator[tuple[float, Model]]:
    """With one algorithm, and with two for each length that can part them: the best model, and its
    criterion."""
    times = np.array([sample.seconds for sample in samples])
    lengths = np.array([sample.nbytes for sample in samples])
    columns = {
        name: np.array(
            [
                parts_of_a_time(count(ranks, nbytes), ranks, nbytes, machine, kind, share)
                for ranks, nbytes, _ in samples
            ]
        )
        / times[:, None]
        for name, count in chosen.items()
    }
    for switch in (0, *np.unique(lengths)[:-1]):
        halves = [lengths <= switch, lengths > switch] if switch else [lengths > 0]
        if all(half.sum() >= LEAST for half in halves):
            parts = [
                _part({name: matrix[half] for name, matrix in columns.items()}) for half in halves
            ]
            model = Model("", kind, share, int(switch), parts[0].part, parts[-1].part)
            yield _criterion(parts, len(samples)), model


def _part(columns: Mapping[str, Numbers]) -> _Part:
    """The algorithm, and its parameters, that explain some samples best."""
    parts = []
    for name, matrix in columns.items():
        squares, freedom, values = nonnegative(matrix)
        seen = np.abs(matrix).sum(axis=0)
        parameters = _completed(Parameters(*map(float, values)), Parameters(*map(float, seen)))
        parts.append(_Part(squares, freedom, Part(name, parameters)))
    rows = len(next(iter(columns.values())))
    return parts[first_least([_criterion([part], rows) for part in parts])]


def _criterion(parts: Sequence[_Part], count: int) -> float:
    squares = sum(fitted.squares for fitted in parts) / count + NOISE**2
    freedom = sum(fitted.freedom for fitted in parts) + 2 * (len(parts) - 1)
    return count * math.log(squares) + freedom * math.log(count)


def first_least(criteria: Sequence[float] | Numbers) -> int:
    """The number of the least one; of those that differ by rounding alone, the first."""
    values = np.asarray(criteria)
    return int(np.argmax(values <= values.min() + ROUNDING))


def _completed(parameters: Parameters, seen: Parameters) -> Parameters:
    """Where all samples were in caches, or none was, a byte elsewhere costs as many copies."""
    if not seen.memory:
        return parameters._replace(memory=parameters.beta or 1.0)
    return parameters if seen.beta else parameters._replace(beta=parameters.memory)


def nonnegative(columns: Numbers) -> tuple[float, int, Numbers]:
    """The weights, none below 0, by which columns add up to 1 in every row.

    Tries every subset of the columns; of those without a negative weight the criterion takes one.

    Args:
        columns: rows x k, none below 0.

    Returns:
        Sum of the squared errors, number of weights above 0, and the k weights.
    """
    rows, count = columns.shape
    scale = np.sqrt((columns**2).sum(axis=0))
    scaled = columns / np.where(scale > 0, scale, 1)
    gram, sums = scaled.T @ scaled, scaled.sum(axis=0)
    subsets = _subsets(count)
    subsets = subsets[(subsets <= (scale > 0)).all(axis=1) & (subsets.sum(axis=1) < rows)]
    among = subsets[:, :, None] & subsets[:, None, :]
    systems = np.where(among, gram, 0.0) + np.eye(count) * np.where(subsets, 1e-10, 1.0)[:, None, :]
    weights = np.linalg.solve(systems, np.where(subsets, sums, 0.0)[:, :, None])[:, :, 0]
    squares = ((weights @ scaled.T - 1) ** 2).sum(axis=1)
    criteria = rows * np.log(squares / rows + NOISE**2) + subsets.sum(axis=1) * math.log(rows)
    criteria[(weights < -ROUNDING).any(axis=1)] = math.inf
    best = first_least(criteria)
    values = np.maximum(weights[best], 0.0) / np.where(scale > 0, scale, 1)
    return float(squares[best]), int(subsets[best].sum()), values


@cache
def _subsets(count: int) -> NDArray[Any]:
    """Every choice of columns but none at all, a row each."""
    numbers = np.arange(1, 1 << count)
    return (numbers[:, None] >> np.arange(count) & 1).astype(bool)
