"""Steps of deep learning that are measured as operations are: their names, and what bytes mean.

Their tensors are torch's, so only torch's process groups can be their transports. The computation
alone, without communication, is measured beside them and takes NO_TRANSPORT's name.
"""

from experiments.model.contender_names import GLOO, PLAIN, TORCH
from experiments.model.experiment import ARENA, ARMS, Experiment

DDP, FSDP2, DECODE = "ddp_step", "fsdp2_step", "decode_step"

WORKLOADS = {DDP: "DDP step", FSDP2: "FSDP2 step", DECODE: "Decode step"}
"""By name, as figures and tables show them."""

TRANSPORTS = (GLOO, TORCH)

WIDTH = 512  # of a layer that is trained
HIDDEN = 1024  # of a token's state

GRAIN = {DDP: 4 * WIDTH * WIDTH, FSDP2: 4 * WIDTH * WIDTH, DECODE: 4 * HIDDEN}
"""What the bytes of a cell are multiples of. In training: a layer; they are those of all gradients.
In decoding: a token's state; they are those of one all_reduce."""

HELD = {DDP: 5, FSDP2: 5, DECODE: 0}
"""How many times the bytes of a cell each of its contenders holds at most, besides its buffers:
parameters, gradients, the buffers of DDP or FSDP2, and the second network of a check."""


def refusal(experiment: Experiment) -> str:
    """Why a campaign that has workloads cannot be measured; "" where it can."""
    factors, launches = experiment.factors, experiment.launches
    steps = [name for name in factors.operations if name in WORKLOADS]
    if not steps:
        return ""
    names = ", ".join(steps)
    for key, found, possible in (
        ("operations", factors.operations, tuple(WORKLOADS)),
        ("transports", factors.transports, TRANSPORTS),
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
                f"{key} {', '.join(other)} cannot be measured together with {names}: "
                f"ask for {', '.join(possible) or 'none'}, or measure them in another campaign"
            )
    for step in steps:
        if any(size % GRAIN[step] for size in factors.sizes):
            return (
                f"sizes {list(factors.sizes)} must be multiples of {GRAIN[step]} bytes, which "
                f"{step} moves at least"
            )
    return ""
