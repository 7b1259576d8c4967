"""One region, as its producer and its consumer see it: arrays, sequence numbers, flow control.

Knows shapes and types; how the other rank sees the bytes is an end's affair.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from hbmcomm.training.regions.ends import End
from hbmcomm.training.regions.extent import Extent, Form, decoded, form_of


class RemoteRegion:
    """A region of another rank, for the rank that produces its tensors.

    Not collective, and neither thread-safe nor fork-safe. Arrays are invalid once the regions are
    closed.

    Attributes:
        capacity: The most bytes of a tensor.
        copied_bytes: Bytes that this library has copied so far: none where both ranks share memory
            and the program computes into `array`.
    """

    def __init__(self, end: End, extent: Extent) -> None:
        self.capacity, self.copied_bytes = extent.capacity, 0
        self._end, self._extent = end, extent
        self._asked: Any = None
        self._array: NDArray[Any] | None = None
        self._parts: tuple[slice, ...] = ()
        self._posted, self._is_open = 0, False

    def array(self, shape: int | Iterable[int], dtype: DTypeLike = "float32") -> NDArray[Any]:
        """The memory in which the consumer will read the next tensor; its contents are arbitrary.

        Waits until the consumer has released the tensor before. The shape and the type may differ
        from tensor to tensor; nothing is registered again. torch.from_numpy shares the memory.

        Raises:
            PeerError: The consumer died or left.
            TypeError: A dtype that is not of plain numbers.
            ValueError: The tensor does not fit into the region.
        """
        # a copy: the program may change its list
        asked = (tuple(shape) if isinstance(shape, Iterable) else shape, dtype)
        fresh = None if asked == self._asked else self._fitting(form_of(*asked))
        self._end.wait(self._extent.released, self._posted)
        if fresh is not None:
            self._describe(fresh)
            self._asked = asked
        assert self._array is not None
        self._is_open = True
        return self._array

    def post(self) -> None:
        """Let the consumer read what is in the array now.

        Raises:
            PeerError: The consumer died or left.
            ValueError: There is no array since the last post.
        """
        if not self._is_open:
            raise ValueError("nothing to post: compute into array(shape, dtype) first")
        self._end.post(self._parts, self._extent.posted, self._posted + 1)
        self._posted, self._is_open = self._posted + 1, False
        if self._end.copies:
            self.copied_bytes += sum(part.stop - part.start for part in self._parts)

    def write(self, values: ArrayLike) -> None:
        """Copy a tensor into the region and post it; errors as for `array` and `post`."""
        given = np.asarray(values)
        np.copyto(self.array(given.shape, given.dtype), given)
        self.copied_bytes += given.nbytes
        self.post()

    def _fitting(self, form: Form) -> Form:
        if form.nbytes > self.capacity:
            raise ValueError(
                f"a tensor of shape {form.shape} and dtype {form.dtype} has {form.nbytes:,} bytes; "
                f"the region has {self.capacity:,}; allocate a larger one"
            )
        return form

    def _describe(self, form: Form) -> None:
        memory, extent = self._end.memory, self._extent
        data = slice(extent.data, extent.data + form.nbytes)
        array = memory[data].view(form.dtype).reshape(form.shape)
        memory[extent.description] = np.frombuffer(form.encoded(), np.uint8)
        self._array = array  # of what the description says, also after an error
        self._parts = (extent.description, data)


class Region:
    """A region of this rank, which consumes the tensors that another rank produces in it.

    Not collective, and neither thread-safe nor fork-safe.

    Attributes:
        capacity: The most bytes of a tensor.
    """

    def __init__(self, end: End, extent: Extent) -> None:
        self.capacity = extent.capacity
        self._end, self._extent = end, extent
        self._head = end.memory.data[extent.description]
        self._description = b""
        self._array: NDArray[Any] | None = None
        self._released, self._is_held = 0, False

    def wait(self) -> NDArray[Any]:
        """The next tensor, in place: valid until `release`. Waits until it is posted.

        Raises:
            PeerError: The producer died or left, or described no tensor that fits.
        """
        self._end.wait(self._extent.posted, self._released + 1)
        description = self._head.tobytes()
        if description != self._description:
            form = decoded(description, self.capacity)
            begin = self._extent.data
            data = self._end.memory[begin : begin + form.nbytes]
            self._array = data.view(form.dtype).reshape(form.shape)
            self._description = description
        assert self._array is not None
        self._is_held = True
        return self._array

    def release(self) -> None:
        """Let the producer write the next tensor.

        Raises:
            PeerError: The producer is gone.
            ValueError: There is no tensor since the last release.
        """
        if not self._is_held:
            raise ValueError("nothing to release: call wait() first")
        self._end.post((), self._extent.released, self._released + 1)
        self._released, self._is_held = self._released + 1, False
