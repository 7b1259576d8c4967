"""Cost models of collectives and training steps: fitted to measured times, moved to other machines.

Needs NumPy alone. Predicts; measures nothing.
"""

from hbmcomm.costmodel.counts import ALGORITHMS, Counts
from hbmcomm.costmodel.fitting import Sample, fit
from hbmcomm.costmodel.known import MACHINES, NETWORKS, known, network
from hbmcomm.costmodel.machine import CostModelError, Machine, Memory, Network
from hbmcomm.costmodel.model import Absolute, Model, Parameters, Part
from hbmcomm.costmodel.overlap import Bucket, Layer, Step, buckets, step
from hbmcomm.costmodel.scaling import best_algorithm, messages_seconds, seconds_on
from hbmcomm.costmodel.shared import SHARED

__all__ = [
    "ALGORITHMS",
    "MACHINES",
    "NETWORKS",
    "SHARED",
    "Absolute",
    "Bucket",
    "CostModelError",
    "Counts",
    "Layer",
    "Machine",
    "Memory",
    "Model",
    "Network",
    "Parameters",
    "Part",
    "Sample",
    "Step",
    "best_algorithm",
    "buckets",
    "fit",
    "known",
    "messages_seconds",
    "network",
    "seconds_on",
    "step",
]
