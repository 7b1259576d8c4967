"""What a campaign stored of its experiment, read back as it was asked.

The machine that measured knew every name in it: an emulated machine of its own, an MPI, a kind. So
any name is taken here, where spec.py refuses those that this machine does not know. A key that the
stored form lacks has its default; one that this version does not know is left out.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

from experiments.model.errors import ExperimentsError
from experiments.model.experiment import Experiment


class Damaged(ExperimentsError):
    """A stored experiment is no campaign's: the text names the file and the key."""


def experiment(values: object, source: str) -> Experiment:
    """The experiment of a campaign.json.

    Args:
        values: as Experiment.to_dict() gave it to JSON.
        source: the file, as messages name it.

    Raises:
        Damaged: a value has a form that no campaign writes.
    """
    found = _read(Experiment, values, f"{source}: experiment")
    assert isinstance(found, Experiment)
    return found


def _read(form: Any, value: object, place: str) -> Any:
    """A value in the form of a field: a dataclass, a tuple, a mapping or a plain type."""
    origin, inside = get_origin(form), get_args(form)
    if is_dataclass(form) and isinstance(value, Mapping):
        return _read_fields(form, value, place)
    if origin is tuple and isinstance(value, list | tuple):
        return tuple(_read(inside[0], each, place) for each in value)
    if origin is Mapping and isinstance(value, Mapping):
        return {str(key): _read(inside[1], each, f"{place}.{key}") for key, each in value.items()}
    if form is float and type(value) is int:
        return float(value)
    if type(value) is not form:
        raise Damaged(
            f"{place} holds {value!r}, which no campaign writes: the file is damaged; take it from "
            "its archive again, or measure again into another --out"
        )
    return value


def _read_fields(form: Any, values: Mapping[str, Any], place: str) -> Any:
    forms = get_type_hints(form)
    found = {}
    for field in fields(form):
        required = field.default is MISSING and field.default_factory is MISSING
        if field.name in values or required:
            value = values.get(field.name)
            found[field.name] = _read(forms[field.name], value, f"{place}.{field.name}")
    return form(**found)
