"""A campaign of seconds, as a file that a user would write."""

import json
from typing import Any

FACTORS = {
    "operations": ["allreduce"],
    "transports": ["direct", "mpi"],
    "kinds": ["regular"],
    "sizes": "1KiB",
}
LAUNCHES = {"environments": ["host"], "aa_pair": False, "blocks": 1}
MEASUREMENT = {"time_cap": 0.01, "min_iterations": 6, "max_iterations": 20}


def tiny(**changes: dict[str, Any]) -> str:
    """The text of its TOML file; `changes` has entries of factors, launches and measurement."""
    text = 'title = "Tiny"\nquestion = "Is it measured?"\n'
    tables = {"factors": FACTORS, "launches": LAUNCHES, "measurement": MEASUREMENT}
    for table, entries in tables.items():
        text += f"[{table}]\n"
        for key, value in (entries | changes.get(table, {})).items():
            text += f"{key} = {json.dumps(value)}\n"
    return text
