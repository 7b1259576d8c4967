"""What a check asks for fits every machine that a description can make."""

from dataclasses import replace

import pytest

from experiments.emulation import description, question


@pytest.mark.parametrize("count", range(1, 17))
def test_every_rank_has_as_many_whole_pages_to_send(count: int) -> None:
    machine = description.load("plain")
    machine = replace(machine, nodes=machine.nodes * count)
    size, ranks = question.nbytes(machine), question.ranks(machine)
    assert ranks == max(2, count)
    assert size % (ranks * 4096) == 0
    assert 512 * 1024 <= size < 512 * 1024 + ranks * 4096
