"""What makes a launch worth nothing: a rank ends all others with one line, and no traceback."""


class Misplaced(Exception):
    """A strict kind has pages elsewhere or unaccounted for: measured there, nothing counts."""


class WrongResult(Exception):
    """An operation left something other than it should have."""
