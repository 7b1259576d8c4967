"""The one base of every error that a user can cause or mend; told without a traceback."""


class ExperimentsError(Exception):
    """Its text says what was asked, what was found and the one thing to do next."""
