"""Dissemination: in each round a host sends to one further on, twice as far as before.

After log2(N) rounds every host has heard of every other, directly or not.
"""

from __future__ import annotations

from hbmcomm.collectives.hierarchical.between.steps import Message, Steps, exchange


def barrier(host: int, size: int) -> Steps:
    """Messages of entry 0, which goes; entry 1 is where it comes to."""
    rounds = (size - 1).bit_length()
    return [
        exchange(
            Message((host + (1 << each)) % size, (0, 1)),
            Message((host - (1 << each)) % size, (1, 2)),
        )
        for each in range(rounds)
    ]
