"""Rich's tables and texts as plain text, and on standard output."""

import io

from rich.console import Console, RenderableType
from rich.text import Text


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
            console.print(Text(part), soft_wrap=True)
        else:
            console.print(part)
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


def to_stdout(what: RenderableType, width: int) -> None:
    """Print as wide as the terminal is, or so many columns wide where there is none."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=width)
    console.print(what, highlight=False)
