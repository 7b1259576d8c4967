"""What the words of a command line mean: positional arguments, numbers, choices."""

import re
import sys
from itertools import takewhile
from pathlib import Path

from experiments.model.errors import ExperimentsError


def positional(task: str, *names: str) -> list[str]:
    """The arguments that a task takes without a flag; beside --help only those that are given.

    invoke would take `--help` for the value of the first argument that is missing.
    """
    words = _words(task)
    if not {"-h", "--help"} & set(words):
        return list(names)
    return list(names[: sum(not word.startswith("-") for word in words)])


def leading_path(task: str, name: str) -> list[str]:
    """[name] where a task's first word is a path, as in `report ARCHIVE`; else [].

    invoke asks for a positional argument that is missing, and takes the name of a second task on
    the command line for its value.
    """
    word = "".join(_words(task)[:1])
    path = not word.startswith("-") and ("/" in word or "." in word or Path(word).is_dir())
    return [name] if word and path else []


def leading(task: str, *names: str) -> list[str]:
    """The arguments given directly after a task's name; the others keep their defaults."""
    words = takewhile(lambda word: not word.startswith("-"), _words(task))
    return [name for name, _ in zip(names, words, strict=False)]


def _words(task: str) -> list[str]:
    """What the command line holds after a task's name."""
    return sys.argv[sys.argv.index(task) + 1 :] if task in sys.argv else []


def whole_number(flag: str, text: str, least: int) -> int | None:
    """A flag's whole number; None where the flag is not given.

    Raises:
        ExperimentsError: naming the flag and the least number.
    """
    if not text:
        return None
    if not re.fullmatch("[0-9]{1,18}", text) or int(text) < least:
        raise ExperimentsError(f"--{flag} {text!r} must be a whole number, {least} or more")
    return int(text)


def check_choice(flag: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuse a flag's value that is not among the choices."""
    if value not in choices:
        raise ExperimentsError(f"--{flag} {value!r} is not one of {', '.join(choices)}")
