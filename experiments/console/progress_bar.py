"""What the user sees while launches run: a bar on a terminal, plain lines elsewhere."""

import time

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from experiments.console.output import printable


class Display:
    """Progress over launches, to be used in a with statement."""

    def __init__(self, total: int, done: int, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._total, self._done, self._before = total, done, done
        self._name, self._began, self._many = "", 0.0, 1
        self._started = time.monotonic()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task: TaskID = self._bar.add_task("", total=total, completed=done)

    def __enter__(self) -> "Display":
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def begin(self, name: str, launches: int = 1) -> None:
        """One launch starts, or several that run at the same time."""
        self._name, self._began, self._many = name, time.monotonic(), launches
        self._bar.update(self._task, description=printable(name))

    def within(self, share: float) -> None:
        """How much of the current launches is done, 0 to 1."""
        self._bar.update(self._task, completed=self._done + share * self._many)

    def end(self) -> None:
        """The current launches are complete."""
        self._done += self._many
        self._bar.update(self._task, completed=self._done)
        if not self._console.is_terminal:
            seconds = time.monotonic() - self._began
            self.say(f"[{self._done}/{self._total}] {self._name}: {seconds:.1f} s{self._left()}")

    def say(self, line: str) -> None:
        """One line for the user, above the bar."""
        self._console.print(printable(line), markup=False, highlight=False, soft_wrap=True)

    def _left(self) -> str:
        """How long the launches to come take, if they take as long as those before."""
        now = time.monotonic()
        seconds = (now - self._started) / (self._done - self._before) * (self._total - self._done)
        return f", about {seconds / 60:.0f} min left" if seconds > 60 else ""
