"""Commands as golden text, and how two of them differ."""

import difflib
from collections.abc import Iterable


def paragraphs(commands: Iterable[str]) -> str:
    """One command per paragraph, one switch per line."""
    return "\n".join(command.replace(" --", "\n    --") + "\n" for command in commands)


def delta(before: str, after: str) -> str:
    """The lines that differ, as a unified diff without context."""
    texts = (before.splitlines(keepends=True), after.splitlines(keepends=True))
    return "".join(list(difflib.unified_diff(*texts, n=0))[2:])
