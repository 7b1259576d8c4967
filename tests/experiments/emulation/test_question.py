"""What a check asks for fits every machine that a description can make."""

import pytest

from experiments.emulation import question


@pytest.mark.parametrize("count", range(1, 17))
def test_every_rank_has_as_many_whole_pages_to_send(count: int) -> None:
    size, ranks = question.nbytes(count), question.ranks(count)
    assert ranks == max(2, count)
    assert size % (ranks * 4096) == 0
    assert 512 * 1024 <= size < 512 * 1024 + ranks * 4096
