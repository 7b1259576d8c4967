"""What a campaign stored of its experiment, read back as it was asked.

The machine that measured knew every name in it: an emulated machine of its own, an MPI, a kind. So
any name is taken here, where spec.py refuses those that this machine does not know. A key that the
stored form lacks has its default; one that this version does not know is left out.
"""

import json
from typing import Any

from pydantic import TypeAdapter, ValidationError

from experiments.model.environment import EnvironmentId, check_hosts
from experiments.model.errors import SpecError
from experiments.model.experiment import Experiment
from experiments.results.store import ResultsError

FORM = TypeAdapter(Experiment)


def experiment(values: object, source: str) -> Experiment:
    """The experiment of a campaign.json.

    Args:
        values: as Experiment.to_dict() gave it to JSON.
        source: the file, as messages name it.

    Raises:
        ResultsError: a value has a form that no campaign writes.
    """
    try:
        asked = FORM.validate_json(json.dumps(_parsed(values)), strict=True)
        for environment in asked.launches.environments:
            if environment.hosts:
                check_hosts(environment.hosts, environment.rate)
        return asked
    except SpecError as error:
        raise ResultsError(
            f"{source}: experiment.launches.environments cannot be so: {error}"
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        keys = ("experiment", *(each for each in first["loc"] if isinstance(each, str)))
        value = None if first["type"] == "missing" else first["input"]
        raise ResultsError(
            f"{source}: {'.'.join(keys)} holds {value!r}, which no campaign writes: the file is "
            "damaged; take it from its archive again, or measure again into another --out"
        ) from error


def _parsed(values: Any) -> Any:
    """The values with each environment's text as the fields of an EnvironmentId."""
    match values:
        case {"launches": {"environments": [*texts]} as launches}:
            parsed = [
                vars(EnvironmentId.parse(text)) if isinstance(text, str) else text for text in texts
            ]
            return {**values, "launches": {**launches, "environments": parsed}}
    return values
