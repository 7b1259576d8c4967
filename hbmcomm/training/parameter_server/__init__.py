"""A parameter server over the memory that ranks share, or over messages between hosts."""

from hbmcomm.training.parameter_server.optimizers import (
    SGD,
    Adam,
    AdamW,
    Momentum,
    Nesterov,
    Optimizer,
)
from hbmcomm.training.parameter_server.server import CHUNK_BYTES, ParameterServer, serve

__all__ = [
    "CHUNK_BYTES",
    "SGD",
    "Adam",
    "AdamW",
    "Momentum",
    "Nesterov",
    "Optimizer",
    "ParameterServer",
    "serve",
]
