"""Attributes that are chosen when a communicator is made, and read-only from then on."""

from __future__ import annotations

from typing import Any, Generic, Never, TypeVar, overload

Value_co = TypeVar("Value_co", covariant=True)


class Fixed(Generic[Value_co]):
    """A read-only attribute: the field of that name of the communicator's choice."""

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, comm: None, owner: type) -> Fixed[Value_co]: ...
    @overload
    def __get__(self, comm: object, owner: type) -> Value_co: ...
    def __get__(self, comm: Any, owner: type) -> Any:
        return self if comm is None else getattr(comm._choice, self._name)

    def __set__(self, comm: object, value: Never) -> None:
        raise AttributeError(
            f"{self._name} of a communicator is fixed when it is made; make another: "
            f"Communicator(comm, {self._name}=...)"
        )
