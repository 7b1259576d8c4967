"""Objects that all ranks close together, as context managers."""

from __future__ import annotations

from abc import ABC, abstractmethod
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

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            self.close()
        else:
            self._abandon(error)
