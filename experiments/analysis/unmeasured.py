"""Levels that a campaign asked for and nowhere measured, and why."""

from experiments.analysis.reading import Campaign

UNFINISHED = "no launch of it is finished"


def levels(campaign: Campaign) -> dict[str, str]:
    """{level asked for and nowhere measured: why}; a rank count is written "16 ranks"."""
    asked = campaign.experiment
    cells = campaign.cells
    missing = dict(
        line.split(": ", 1) for line in campaign.header.get("missing", []) if ": " in line
    )
    reasons: dict[str, str] = {}
    for launch in campaign.launches:
        for cell in launch["cells"]:
            if "skipped" in cell:
                for column in ("operation", "transport", "kind", "locality"):
                    level = str(cell[column])  # which many reasons begin with
                    reasons.setdefault(level, cell["skipped"].removeprefix(f"{level}: "))
    asked_for = {
        "environment": tuple(map(str, asked.launches.environments)),
        "mpi": asked.launches.mpis,
        "binding": asked.launches.bindings,
        "operation": asked.factors.operations,
        "transport": asked.factors.transports,
        "kind": asked.factors.kinds,
        "locality": asked.factors.localities,
    }
    present = set(cells["environment"]) | set(cells["arm"])
    lacking = {name: why for name, why in missing.items() if name not in present}
    for column, wanted in asked_for.items():
        for level in wanted:
            if level not in set(cells[column]):
                lacking.setdefault(level, reasons.get(level, UNFINISHED))
    few = [ranks for ranks in asked.launches.ranks if ranks not in set(cells["ranks"])]
    return lacking | {f"{ranks} ranks": UNFINISHED for ranks in few}
