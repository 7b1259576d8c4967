"""The nodes that hold each rank's bytes, and those that should, as values and as text. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.emulation.question import PAGE


@dataclass(frozen=True)
class Pages:
    """The nodes of some memory, as found.

    Attributes:
        on: {node: bytes}.
        missing: bytes that are on no node; negative if there are too many.
        error: why there is no such memory; "" if there is.
    """

    on: Mapping[int, int]
    missing: int = 0
    error: str = ""

    @property
    def total(self) -> int:
        """Bytes on all nodes together."""
        return sum(self.on.values())

    def __str__(self) -> str:
        if self.error:
            return self.error
        lost = [f"{self.missing:,} bytes nowhere"] if self.missing else []
        shares = {node: nbytes / self.total for node, nbytes in self.on.items()}
        if len(shares) == 1 or _even(self.on, PAGE):
            return ", ".join([numbers(shares) + _evenly(shares), *lost])
        return ", ".join([*(f"{node} ({part:.1%})" for node, part in shares.items()), *lost])


@dataclass(frozen=True)
class Promise:
    """All bytes should be on these nodes, in equal shares if `evenly`."""

    nodes: tuple[int, ...]
    evenly: bool = False

    def holds(self, pages: Pages, tolerance: float) -> bool:
        """Whether every byte is on a promised node.

        Args:
            tolerance: bytes by which a node's share may differ from an equal one.
        """
        if pages.error or pages.missing or not pages.total or set(pages.on) - set(self.nodes):
            return False
        return not self.evenly or _even(
            {node: pages.on.get(node, 0) for node in self.nodes}, tolerance
        )

    def __str__(self) -> str:
        return numbers(self.nodes) + (_evenly(self.nodes) if self.evenly else "")


def of(
    answer: Mapping[str, Any] | None, nbytes: int, by: str = "pages", more: bool = False
) -> Pages:
    """Pages from check.py's answer.

    Args:
        nbytes: the expected size, or the least size if there may be `more`.
        by: the source: "pages", hbmcomm; "witness", the kernel's files.
    """
    if answer and "error" in answer:
        return Pages({}, error=f"{answer['error']}: {answer['text']}")
    if not answer or by not in answer:
        return Pages({}, error="not looked at")
    on = {int(node): each for node, each in answer[by].items()}
    missing = nbytes - sum(on.values())
    return Pages(on, max(0, missing) if more else missing)


def together(views: Iterable[Pages]) -> Pages:
    """Several views of one memory as one; an error in one is an error of all."""
    on: Counter[int] = Counter()
    missing = 0
    for view in views:
        if view.error:
            return view
        on.update(view.on)
        missing += view.missing
    return Pages(dict(sorted(on.items())), missing)


def ranks(values: Sequence[object]) -> str:
    """A text for each rank, or one for all if they are equal."""
    texts = [str(value) for value in values]
    if len(set(texts)) == 1:
        return f"every rank: {texts[0]}"
    return "; ".join(f"rank {rank}: {text}" for rank, text in enumerate(texts))


def numbers(found: Iterable[int]) -> str:
    """Numbers in the kernel's list format: "0-3,8"; "none"."""
    runs: list[list[int]] = []
    for number in sorted(found):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{run[0]}-{run[-1]}" if run[1:] else str(run[0]) for run in runs) or "none"


def _even(on: Mapping[int, int], tolerance: float) -> bool:
    share = sum(on.values()) / len(on) if on else 0
    return all(abs(nbytes - share) <= tolerance for nbytes in on.values())


def _evenly(nodes: Iterable[int]) -> str:
    return " evenly" if len(list(nodes)) > 1 else ""
