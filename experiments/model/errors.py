"""The one base of every error that a user can cause or mend; shown without a traceback."""


class ExperimentsError(Exception):
    """Its text says what was asked, what was found and the one thing to do next."""


class SpecError(ExperimentsError):
    """An experiment, or a flag that changes one, says something that cannot be meant."""
