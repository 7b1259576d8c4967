"""Steps of training and decoding over process groups of torch."""

from experiments.model.contender_names import GLOO, TORCH
from experiments.model.systems.workload import Workload

DDP, FSDP2, DECODE = "ddp_step", "fsdp2_step", "decode_step"

WIDTH = 512  # of a layer that is trained
HIDDEN = 1024  # of a token's state


def _step(title: str, grain: int, held: int) -> Workload:
    groups = (TORCH, GLOO)
    return Workload(title, groups, grain=grain, held=held, computes=True, uses_torch=True)


WORKLOADS = {
    DDP: _step("DDP step", grain=4 * WIDTH * WIDTH, held=5),
    FSDP2: _step("FSDP2 step", grain=4 * WIDTH * WIDTH, held=5),
    DECODE: _step("Decode step", grain=4 * HIDDEN, held=0),
}
"""The bytes of a training step are those of all gradients, in whole layers. It holds parameters,
gradients, the buffers of DDP or FSDP2, and the second network of a check. The bytes of a decode
step are those of one all_reduce, of the states of whole tokens."""
