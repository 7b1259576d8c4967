"""Fused Allreduce of gradients that become ready in any order; the public names."""

from hbmcomm.training.fusion.buffer_cache import BufferCache, Memory, memory_of
from hbmcomm.training.fusion.fused import FusedAllreduce
from hbmcomm.training.fusion.negotiation import TensorMismatch, TensorMissing
from hbmcomm.training.fusion.submissions import Work

__all__ = [
    "BufferCache",
    "FusedAllreduce",
    "Memory",
    "TensorMismatch",
    "TensorMissing",
    "Work",
    "memory_of",
]
