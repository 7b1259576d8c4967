"""Training with DASO, beside blocking allreduces."""

import itertools

from experiments.model.systems.workload import Workload

DASO_STEP = "daso_step"
DASO, BLOCKING, MPI_BLOCKING, ALONE = "daso", "blocking", "mpi-blocking", "alone"
CLASSIFIER = (256, 512, 256, 10)  # widths of a small network, from inputs to classes


def _of_layers(*widths: int) -> int:
    """Elements of the gradients of fully connected layers with biases."""
    return sum((low + 1) * high for low, high in itertools.pairwise(widths))


WORKLOADS = {
    DASO_STEP: Workload(
        "Eight batches of training on hosts",
        (DASO, BLOCKING, MPI_BLOCKING, ALONE),
        program="daso",
        held=12,
        elements=_of_layers(*CLASSIFIER),
    )
}
