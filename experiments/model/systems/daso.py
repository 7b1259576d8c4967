"""Training with DASO, beside blocking allreduces."""

import itertools

from experiments.model.systems.workload import Workload

DASO_STEP = "daso_step"
DASO, BLOCKING, MPI_BLOCKING, ALONE = "daso", "blocking", "mpi-blocking", "alone"
CLASSIFIER = (256, 512, 256, 10)  # widths of a small network with biases, inputs to classes

WORKLOADS = {
    DASO_STEP: Workload(
        "Eight batches of training on hosts",
        (DASO, BLOCKING, MPI_BLOCKING, ALONE),
        program="daso",
        held=12,
        elements=sum((low + 1) * high for low, high in itertools.pairwise(CLASSIFIER)),
    )
}
