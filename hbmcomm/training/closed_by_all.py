"""Objects that all ranks close together, as context managers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class ClosedByAll(ABC):
    """Leaving its `with` block closes it, unless by an error: other ranks may have none."""

    @abstractmethod
    def close(self) -> None:
        """Free it; collective."""

    @abstractmethod
    def _abandon(self, error: BaseException) -> None:
        """Go without waiting for other ranks; those that wait for this one get an error."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self._abandon(error)
