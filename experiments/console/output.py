"""Text for users: Rich's tables and texts as plain text, and on standard output.

Whatever a file, a rank, a guest or a folder's name holds, no control character reaches a terminal.
"""

import io
from collections.abc import Iterator
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderableType
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
