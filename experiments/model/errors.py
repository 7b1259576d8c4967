"""Errors that a user can cause or mend, shown without a traceback, and what ends a launch."""

import difflib
from collections.abc import Iterable


class ExperimentsError(Exception):
    """Its text says what was asked, what was found and the one thing to do next."""


class SpecError(ExperimentsError):
    """An experiment, or a flag that changes one, says something that cannot be meant."""


class Missing(ExperimentsError):
    """This machine lacks what some arms need: a campaign can leave these arms out.

    An image that does not build is a defect instead.
    """


class Misplaced(Exception):
    """A strict kind has pages elsewhere or unaccounted for: a launch measured there counts nothing.

    Ranks raise it, as WrongResult: one line ends all of them, without a traceback.
    """


class WrongResult(Exception):
    """An operation left something other than it should have."""


def unknown(what: str, value: object, choices: Iterable[str]) -> str:
    """The message for a name that is not among the choices; suggests one only where it is near."""
    known = {str(choice).lower(): str(choice) for choice in choices}
    asked = str(value).strip().lower()
    near = difflib.get_close_matches(asked, known, n=1)
    near += [name for name in known if asked and name.startswith(asked)]
    hint = f"did you mean {known[near[0]]!r}? " if near else ""
    return f"unknown {what} {value!r}; {hint}Known: {', '.join(known.values())}"
