"""What the library does when the program ends, after the exit handlers that the program has.

Python runs exit handlers in the reverse order of their registration. Those of the library are
registered as it is imported, not as the first communicator is made: handlers that a program
registers between the two, or later, may still call communicators, also ones made after them.
"""

import atexit
import contextlib
import weakref
from collections.abc import Callable
from typing import TypeVar

Step = TypeVar("Step", bound=Callable[[], object])

_steps = contextlib.ExitStack()
_is_over = False


def at_end(step: Step) -> Step:
    """Have a function called at the end, before communicators are left; returns it.

    The latest is called first. An error in one keeps no other from being called.
    """
    _steps.callback(step)
    return step


def is_over() -> bool:
    """Whether the end has come, so that finalizers leave communicators or have left them."""
    return _is_over


@at_end
def _note_end() -> None:
    global _is_over
    _is_over = True


# All finalizers share an exit handler, which Python registers as the first of them is made.
weakref.finalize(_note_end, _steps.close).atexit = False
atexit.register(_steps.close)
