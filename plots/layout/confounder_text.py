"""What may be an arm's whole effect though it is not the container: one sentence each."""

from collections.abc import Mapping

import pandas as pd

from experiments.analysis.findings.campaign import Findings
from experiments.analysis.findings.selection import rows
from plots.layout import data_path_text
from plots.layout.labels import bytes_text, ranks_text, ratio_and_interval


def caveats(found: Findings) -> tuple[str, ...]:
    """Every sentence that this campaign earns, a lost data path first."""
    lost = data_path_text.short(found.data_paths.losses)
    return (*([lost] if lost else []), *beside_data_path(found))


def beside_data_path(found: Findings) -> tuple[str, ...]:
    """The sentences on other causes than a lost data path."""
    return (*interpreters(found.interpreters), *copies(found.straying_copies))


def interpreters(versions: Mapping[str, str]) -> tuple[str, ...]:
    """One sentence where environments have different versions of Python; else none."""
    if not versions:
        return ()
    host_first = sorted(versions.items(), reverse=True)
    named = ", ".join(f"{name} {version}" for name, version in host_first)
    return (f"The interpreters differ: Python: {named}.",)


def copies(straying: pd.DataFrame) -> tuple[str, ...]:
    """A sentence for each arm in which plain copies stray."""
    return tuple(
        "The control differs: a plain copy without MPI already takes "
        f"{ratio_and_interval(each)} times as long in {each.arm} at "
        f"{bytes_text(each.bytes)}, {ranks_text(each.ranks)}; {each.straying} of {each.copies} "
        "copies differ like this, and MPI cannot be the cause."
        for each in rows(straying)
    )
