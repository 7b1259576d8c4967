"""What a campaign of workloads may ask for.

What each workload is, experiments/model/workloads.py knows.
"""

from experiments.model.contender_names import PLAIN
from experiments.model.experiment import ARENA, ARMS, Experiment
from experiments.model.workloads import WORKLOADS, nbytes


def refusal(experiment: Experiment) -> str:
    """Why a campaign that has workloads cannot be measured; "" where it can."""
    factors, launches = experiment.factors, experiment.launches
    asked = [name for name in factors.operations if name in WORKLOADS]
    if not asked:
        return ""
    family = WORKLOADS[asked[0]].family
    relatives = tuple(name for name, each in WORKLOADS.items() if each.family == family)
    contenders = dict.fromkeys(name for each in asked for name in WORKLOADS[each].contenders)
    for key, found, possible in (
        ("operations", factors.operations, relatives),
        ("transports", factors.transports, tuple(contenders)),
        ("kinds", factors.kinds, ("regular",)),
        ("buffers", factors.buffers, (ARENA,)),
        ("forms", factors.forms, (PLAIN,)),
        ("dtype", (factors.dtype,), ("float32",)),
        ("external", launches.external, ()),
        ("arms", (launches.arms,), ARMS[:1]),
        ("cache", (experiment.measurement.cache,), ("warm",)),
    ):
        if other := [each for each in found if each not in possible]:
            return (
                f"{key} {', '.join(other)} cannot be measured together with {', '.join(asked)}: "
                f"ask for {', '.join(possible) or 'none'}, or measure them in another campaign"
            )
    for name in asked:
        grain = WORKLOADS[name].grain
        if any(nbytes(name, size) % grain for size in factors.sizes):
            return (
                f"sizes {list(factors.sizes)} must be multiples of {grain} bytes, which {name} "
                "moves at least"
            )
    return ""
