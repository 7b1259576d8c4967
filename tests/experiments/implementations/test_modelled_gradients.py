"""Plans of steps with emulated computation."""

import pytest

from experiments.implementations import step_plan
from experiments.model.workloads import MODELLED
from hbmcomm.costmodel import buckets


def test_a_plan_has_the_bytes_of_its_workload_and_the_time_of_its_network() -> None:
    for name, workload in MODELLED.items():
        if not workload.network:
            continue
        layers = step_plan.layers(workload.network)
        assert sum(layer.nbytes for layer in layers) == workload.nbytes, name
        backward = sum(layer.seconds for layer in layers)
        assert backward == pytest.approx(2 * step_plan.forward_seconds(workload.network)), name
        all_buckets = buckets(layers, step_plan.BUCKET)
        assert sum(bucket.nbytes for bucket in all_buckets) == workload.nbytes, name
        assert all(bucket.nbytes >= step_plan.BUCKET for bucket in all_buckets[:-1]), name
