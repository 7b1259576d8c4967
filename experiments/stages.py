"""Says what is being done and how long each stage took. Knows nothing of the stages themselves."""

import contextlib
import time
from collections.abc import Callable, Iterator

Say = Callable[[str], None]


class Stages:
    """The stages of one command, in the order in which they ended.

    Args:
        say: takes one line for the user.
    """

    def __init__(self, say: Say) -> None:
        self.say = say
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage; its end is told when it took long enough to be noticed."""
        began = time.monotonic()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - began
        self.say(f"{name}: {self.seconds[name]:.1f} s")

    def summary(self) -> str:
        """All stages on one line, with their sum."""
        parts = [f"{name} {seconds:.1f} s" for name, seconds in self.seconds.items()]
        return f"stages: {', '.join(parts)}; {sum(self.seconds.values()):.1f} s in all"
