"""The gradient tensors of well-known networks, for callers that need real sizes without training.

Knows names and lengths, not shapes. Source: gradient_tensors.csv, the trainable float32 parameters
in the order of the layers, computed from the layer definitions of the published models (AlexNet,
VGG-16, ResNet-50 and -152, Inception-v3, MobileNet-v1, NASNet-A large, BERT-base, GPT-2 small).
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

_TABLE = Path(__file__).with_name("gradient_tensors.csv")

NETWORKS = (
    "alexnet",
    "vgg16",
    "resnet50",
    "resnet152",
    "inception_v3",
    "mobilenet_v1",
    "nasnet_a_large",
    "bert_base",
    "gpt2_small",
)
"""The networks that `gradients` knows."""


@cache
def gradients(model: str) -> tuple[tuple[str, int], ...]:
    """The gradient tensors of a network, in the order of its layers.

    Args:
        model: A name of `NETWORKS`.

    Returns:
        The name of each tensor, unique within the network, and its number of float32 elements.

    Raises:
        ValueError: Unknown network.
    """
    if model not in NETWORKS:
        raise ValueError(f"unknown network {model!r}; known: {', '.join(NETWORKS)}")
    with _TABLE.open(newline="", encoding="utf-8") as table:
        rows = [row for row in csv.DictReader(table) if row["model"] == model]
    return tuple((f"{model}.{row['tensor']}", int(row["elements"])) for row in rows)
