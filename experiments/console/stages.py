"""Shows the stages of a command and the time that each took. Knows no stage in particular."""

import contextlib
import time
from collections.abc import Iterator

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from experiments.console.output import printable


class Stages:
    """The stages of one command, in the order of their ends.

    Args:
        console: standard error by default. On a terminal a spinner runs during a stage.
    """

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self.seconds: dict[str, float] = {}

    def say(self, line: str) -> None:
        """One line for the user."""
        self.console.print(printable(line), markup=False, highlight=False, soft_wrap=True)

    @contextlib.contextmanager
    def stage(self, name: str, spinner: bool = True) -> Iterator[None]:
        """Time a stage and print its end.

        Args:
            spinner: off for a stage that asks the user or has a display of its own.
        """
        began, shown = time.monotonic(), spinner and self.console.is_terminal
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=self.console, transient=True, disable=not shown) as bar:
            bar.add_task(name)
            yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - began
        self.say(f"{name}: {self.seconds[name]:.1f} s")

    def summary(self) -> str:
        """All stages on one line, with their sum."""
        parts = [f"{name} {seconds:.1f} s" for name, seconds in self.seconds.items()]
        return f"stages: {', '.join(parts)}; {sum(self.seconds.values()):.1f} s in all"
