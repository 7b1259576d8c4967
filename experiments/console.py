"""What the user sees of a command: text, the stages of its work, and a bar while launches run.

Whatever a file, a rank, a guest or a folder's name holds, no control character reaches a terminal.
"""

import contextlib
import io
import time
from collections.abc import Iterator
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.text import Text


def printable(text: str) -> str:
    """The text with what is no character to see, but for ends of lines and tabs, as Python has it.

    So a terminal shows an escape sequence, and does not obey it.
    """
    return "".join(
        char if char.isprintable() or char in "\n\t" else ascii(char)[1:-1] for char in text
    )


def print_text(*parts: object, end: str = "\n", file: TextIO | None = None) -> None:
    """print() with printable text: paths and command lines may be named by anyone.

    Args:
        parts: each on a line of its own.
        file: standard output where it is left out.
    """
    print(printable("\n".join(map(str, parts))), end=end, file=file)


class _Shown:
    """What Rich makes of something, with its texts printable; styles stay."""

    def __init__(self, what: RenderableType) -> None:
        self._what = what

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for text, style, control in console.render(self._what, options):
            yield Segment(text if control else printable(text), style, control)


def printed(*parts: RenderableType, width: int | None = None, terminal: bool | None = None) -> str:
    """The parts below each other, without spaces at the ends of lines.

    Args:
        parts: a str stays on one line, however long.
        width: columns; Rich's own choice where it is left out.
        terminal: whether the text goes to one, which shows styles.
    """
    text = io.StringIO()
    console = Console(file=text, width=width, force_terminal=terminal, highlight=False)
    for part in parts:
        if isinstance(part, str):
            console.print(Text(printable(part)), soft_wrap=True)
        else:
            console.print(_Shown(part))
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


def to_stdout(what: RenderableType, width: int) -> None:
    """Print as wide as the terminal is, or so many columns wide where there is none."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=width)
    console.print(_Shown(what), highlight=False)


def _say(console: Console, line: str) -> None:
    console.print(printable(line), markup=False, highlight=False, soft_wrap=True)


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
        _say(self.console, line)

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
        _say(self._console, line)

    def _left(self) -> str:
        """How long the launches to come take, if they take as long as those before."""
        now = time.monotonic()
        seconds = (now - self._started) / (self._done - self._before) * (self._total - self._done)
        return f", about {seconds / 60:.0f} min left" if seconds > 60 else ""
