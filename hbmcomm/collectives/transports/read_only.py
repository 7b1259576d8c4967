"""Attributes that are set when a communicator is created, and read-only from then on."""

from __future__ import annotations

from typing import Any, Generic, Never, TypeVar, overload

Value_co = TypeVar("Value_co", covariant=True)


class ReadOnly(Generic[Value_co]):
    """A read-only attribute: the field of that name of the communicator's options."""

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, comm: None, owner: type) -> ReadOnly[Value_co]: ...
    @overload
    def __get__(self, comm: object, owner: type) -> Value_co: ...
    def __get__(self, comm: Any, owner: type) -> Any:
        return self if comm is None else getattr(comm._options, self._name)

    def __set__(self, comm: object, value: Never) -> None:
        raise AttributeError(
            f"{self._name} of a communicator is read-only; create another: "
            f"Communicator(comm, {self._name}=...)"
        )
