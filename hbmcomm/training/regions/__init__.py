"""Remote regions: a rank computes straight into the memory where another rank reads the result.

The public names; nothing is implemented here. The design is that of Xue et al., "Fast Distributed
Deep Learning over RDMA", EuroSys 2019: a remote rank is a device with a memory interface.
"""

from hbmcomm.training.regions.region import Region, RemoteRegion
from hbmcomm.training.regions.regions import Regions
from hbmcomm.training.regions.trace import IncomingTrace, OutgoingTrace

__all__ = ["IncomingTrace", "OutgoingTrace", "Region", "Regions", "RemoteRegion"]
