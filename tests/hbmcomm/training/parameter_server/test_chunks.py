"""Chunks cover every key once, and owners get even shares."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hbmcomm.training.networks import gradients
from hbmcomm.training.parameter_server.job import LINE, Job, cut, laid_out, owned, shares
from hbmcomm.training.parameter_server.messages import LEAST_BYTES, in_turns, pieces

LENGTHS = st.lists(st.integers(0, 10_000), min_size=1, max_size=20)
NODES = st.dictionaries(st.integers(0, 9), st.integers(0, 2), min_size=1)
CHUNK = st.integers(1, 50).map(lambda lines: lines * LINE)


@given(LENGTHS, CHUNK)
def test_chunks_cover_each_key_once_in_whole_lines(lengths: list[int], most: int) -> None:
    keys, at = laid_out(lengths), 0
    for key, nbytes in zip(keys, lengths, strict=True):
        assert key.offset == at and nbytes <= key.nbytes < nbytes + LINE
        at += key.nbytes
    chunks = [*cut(keys, most)]
    assert [offset for _, offset, _ in chunks] == [0, *(o + n for _, o, n in chunks)][:-1]
    assert sum(nbytes for *_, nbytes in chunks) == at
    assert all(0 < nbytes <= most and nbytes % LINE == 0 for *_, nbytes in chunks)
    for number, offset, nbytes in chunks:
        key = keys[number]
        assert key.offset <= offset and offset + nbytes <= key.offset + key.nbytes


@given(LENGTHS, CHUNK, NODES)
def test_no_owner_of_a_node_has_a_chunk_more_than_another(
    lengths: list[int], most: int, nodes: dict[int, int]
) -> None:
    keys = laid_out(lengths)
    chunks = owned(keys, most, nodes)
    assert [chunk[:3] for chunk in chunks] == [*cut(keys, most)]
    totals = shares(chunks)
    assert totals.keys() <= nodes.keys()
    by_node = {
        node: [totals.get(rank, 0) for rank in nodes if nodes[rank] == node]
        for node in {*nodes.values()}
    }
    assert all(max(loads) - min(loads) <= most for loads in by_node.values())
    per_owner = [sum(loads) / len(loads) for loads in by_node.values()]
    assert max(per_owner) - min(per_owner) <= most


@pytest.mark.parametrize("network", ["alexnet", "vgg16", "resnet50"])
@pytest.mark.parametrize("owners", [2, 4, 8, 64])
def test_shares_of_real_networks_differ_by_less_than_five_percent(
    network: str, owners: int
) -> None:
    keys = laid_out([4 * elements for _, elements in gradients(network)])
    for nodes in (dict.fromkeys(range(owners), 0), {rank: rank % 2 for rank in range(owners)}):
        totals = shares(owned(keys, 32 * 1024, nodes)).values()
        assert len(totals) == owners and max(totals) <= 1.05 * min(totals)


def job(*lengths: int, rank: int = 0, owners: int = 1, workers: tuple[int, ...] = (0,)) -> Job:
    shapes = tuple((nbytes // 4,) for nbytes in lengths)
    return Job(rank, shapes, 32 * 1024, dict.fromkeys(range(owners), 0), workers, 1.0)


@pytest.mark.parametrize(("nbytes", "least"), [(2**20, LEAST_BYTES), (2**28, 2**20)])
def test_pieces_of_messages_are_whole_chunks_and_not_too_many(nbytes: int, least: int) -> None:
    asked = job(nbytes)
    messages = [*pieces(asked, 0)]
    assert [chunk for piece in messages for chunk in piece] == asked.of(0)
    *lengths, last = [sum(chunk.nbytes for chunk in piece) for piece in messages]
    assert set(lengths) == {least} and 0 < last <= least


def test_each_worker_sends_to_one_owner_after_the_other_and_begins_with_another_one() -> None:
    turns = [
        [
            (number, owner)
            for number, owner, _ in in_turns(job(2**20, rank=rank, owners=2, workers=(0, 1, 2)))
        ]
        for rank in range(3)
    ]
    assert turns[0][:4] == turns[2][:4] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert turns[1][:4] == [(0, 1), (0, 0), (1, 1), (1, 0)]
    assert len({frozenset(order) for order in turns}) == 1
