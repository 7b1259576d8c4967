"""DASO: average gradients in each host at every batch, and parameters between hosts now and then.

After Coquelin et al., "Accelerating neural network training with distributed asynchronous and
selective optimization (DASO)", J. Big Data 9 (2022), doi:10.1186/s40537-021-00556-1.
"""

from hbmcomm.training.daso.optimizer import Daso
from hbmcomm.training.daso.parameters import Arrays
from hbmcomm.training.daso.schedule import Schedule

__all__ = ["Arrays", "Daso", "Schedule"]
