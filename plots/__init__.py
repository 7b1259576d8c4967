"""From a results folder alone to the paper's figures, tables and report; measures nothing.

Runs from a checkout of the project: no wheel holds it.
"""

from importlib.util import find_spec

if find_spec("experiments") is None:
    raise ImportError(
        "plots runs from a checkout of hbmcomm only, and there is no experiments beside it; run "
        "./inv in a checkout",
        name=__name__,
    )
