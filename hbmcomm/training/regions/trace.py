"""Traces one training step, and moves each tensor that is sent to the memory where it is read.

The first step runs on ordinary arrays and messages. What it sends shows which regions are needed;
from the second step on the same calls give remote regions, and nothing is copied.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hbmcomm.training.regions.extent import form_of
from hbmcomm.training.regions.region import Region, RemoteRegion
from hbmcomm.training.regions.regions import Regions

T = TypeVar("T")

_TENSOR = 1001  # tag; Regions uses 0 to 1000
_END = ""  # in place of a name: the first step is over


class OutgoingTrace:
    """The tensors that this rank sends to another, each once in every step; a context manager.

    `with` it around each step.

    Args:
        regions: Of a communicator that has both ranks.
        target: The rank that reads them, with an IncomingTrace.
    """

    def __init__(self, regions: Regions, target: int) -> None:
        self._regions, self._target = regions, target
        self._first: dict[str, NDArray[Any]] = {}
        self._remote: dict[str, RemoteRegion] | None = None

    @property
    def copied_bytes(self) -> int:
        """Bytes that this library has copied since the first step."""
        return sum(region.copied_bytes for region in (self._remote or {}).values())

    def out(
        self, name: str, shape: int | Iterable[int], dtype: DTypeLike = "float32"
    ) -> NDArray[Any]:
        """Memory to compute a tensor into: an ordinary array in the first step, then the region.

        Raises:
            PeerError: The other rank died or left.
            ValueError: The first step did not send this tensor, or it was smaller there.
        """
        if self._remote is not None:
            return _traced(self._remote, name).array(shape, dtype)
        form = form_of(shape, dtype)
        self._first[name] = np.empty(form.shape, form.dtype)
        return self._first[name]

    def send(self, name: str) -> None:
        """Let the other rank read a tensor; errors as for `out`."""
        if self._remote is not None:
            _traced(self._remote, name).post()
        else:
            tensor = _traced(self._first, name)
            self._regions.messages.send((name, tensor), self._target, _TENSOR)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None and self._remote is None:
            self._regions.messages.send((_END, None), self._target, _TENSOR)
            self._remote = self._regions.open(self._target)
            self._first.clear()


class IncomingTrace:
    """The tensors that another rank sends to this one; a context manager.

    `with` it around each step.

    Args:
        regions: Of a communicator that has both ranks.
        source: The rank that sends them, with an OutgoingTrace.
    """

    def __init__(self, regions: Regions, source: int) -> None:
        self._regions, self._source = regions, source
        self._first: dict[str, NDArray[Any]] = {}
        self._own: dict[str, Region] | None = None
        self._held: list[Region] = []

    def receive(self, name: str) -> NDArray[Any]:
        """A tensor of this step, valid until its end; waits for it.

        Raises:
            PeerError: The other rank died or left.
            ValueError: The first step did not receive this tensor.
        """
        if self._own is None:
            while name not in self._first:
                came, tensor = self._regions.messages.receive(self._source, _TENSOR)
                if came == _END:
                    raise ValueError(
                        f"tensor {name!r} was not sent in the first step; found "
                        f"{', '.join(self._first) or 'none'}; send it with OutgoingTrace.send"
                    )
                self._first[came] = tensor
            return self._first[name]
        region = _traced(self._own, name)
        if region not in self._held:
            self._held.append(region)
        return region.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is not None:
            return
        if self._own is None:
            while self._regions.messages.receive(self._source, _TENSOR)[0] != _END:
                pass  # no region for a tensor that this rank does not read
            capacities = {name: max(tensor.nbytes, 1) for name, tensor in self._first.items()}
            self._own = self._regions.allocate(self._source, capacities)
            self._first.clear()
        for region in self._held:
            region.release()
        self._held.clear()


def _traced(known: dict[str, T], name: str) -> T:
    try:
        return known[name]
    except KeyError:
        raise ValueError(
            f"tensor {name!r} is not in the traced step; found {', '.join(known) or 'none'}; send "
            "every tensor in the first step"
        ) from None
