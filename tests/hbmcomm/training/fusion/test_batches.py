"""How ready tensors become calls: every element is in exactly one of them."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hbmcomm.training.fusion.batches import LOOSE, Batch, Piece, batches, padded, planned
from hbmcomm.training.fusion.negotiation import Known, Place, Signature

ROOM = 1024

tensors = st.lists(
    st.tuples(
        st.integers(0, 3 * ROOM // 4),
        st.sampled_from(["float32", "float64", "int16"]),
        st.sampled_from([None, LOOSE]),
    ),
    max_size=30,
)


def signature(elements: int, place: Place | None = None, dtype: str = "float32") -> Signature:
    return Signature((elements,), dtype, place)


@given(tensors, st.booleans())
def test_every_element_is_in_one_call_and_every_tensor_completes_once(
    ready: list[tuple[int, str, Place | None]], splits: bool
) -> None:
    calls = batches(
        ((number, signature(n, place, dtype)) for number, (n, dtype, place) in enumerate(ready)),
        ROOM,
        splits,
    )
    assert sorted(n for batch in calls for n in batch.complete) == list(range(len(ready)))
    covered: Counter[tuple[int, int]] = Counter()
    for batch in calls:
        if batch.place == LOOSE:
            (number,) = batch.complete
            assert batch.nbytes > ROOM
            assert ready[number][2] == LOOSE or not splits
            covered.update((number, i) for i in range(ready[number][0]))
            continue
        if not batch.nbytes:
            assert not any(ready[number][0] for number in batch.complete)
            continue
        end = 0
        for piece in batch.pieces:
            assert ready[piece.number][1] == batch.dtype
            assert piece.offset >= end
            end = piece.offset + (piece.stop - piece.start) * np.dtype(batch.dtype).itemsize
            covered.update((piece.number, i) for i in range(piece.start, piece.stop))
        assert end == batch.nbytes <= ROOM
    assert covered == Counter((n, i) for n, (count, *_) in enumerate(ready) for i in range(count))


def test_neighbours_in_a_block_are_one_call() -> None:
    first, second = signature(3, Place(0, 0, 64)), signature(20, Place(0, 64, 192))
    part = signature(5, Place(0, 256, 276))  # of a tensor: the bytes after it are no padding
    apart, other = signature(5, Place(0, 320, 384)), signature(5, Place(1, 384, 448))
    ready = [(5, other), (4, apart), (3, part), (2, second), (1, first)]
    assert batches(ready, ROOM, splits=True) == [
        Batch("float32", 64 + 80, (1, 2), Place(0, 0, 192)),
        Batch("float32", 20, (3,), Place(0, 256, 276)),
        Batch("float32", 20, (4,), Place(0, 320, 384)),
        Batch("float32", 20, (5,), Place(1, 384, 448)),
    ]


def test_small_tensors_share_a_call_and_none_is_cut_that_fits_into_the_next() -> None:
    calls = batches(enumerate(map(signature, (10, 100, 200))), ROOM, splits=True)
    assert [batch.complete for batch in calls] == [(0, 1), (2,)]
    assert calls[0].pieces == (Piece(0, 0, 10, 0), Piece(1, 0, 100, padded(40)))


def test_a_long_tensor_of_the_program_is_cut_or_left_where_it_is() -> None:
    cut = batches([(7, signature(600))], ROOM, splits=True)
    assert [batch.pieces for batch in cut] == [
        (Piece(7, 0, 256, 0),),
        (Piece(7, 256, 512, 0),),
        (Piece(7, 512, 600, 0),),
    ]
    assert [batch.complete for batch in cut] == [(), (), (7,)]
    assert batches([(7, signature(600))], ROOM, splits=False) == [
        Batch("float32", 2400, (7,), LOOSE)
    ]


def test_tensors_that_ranks_do_not_agree_on_are_in_no_call() -> None:
    good, bad = Known(0, "good", 2), Known(1, "bad", 2)
    good.signatures[:] = [signature(4, Place(0, 0, 64)), signature(4)]
    bad.signatures[:] = [signature(4), signature(5)]
    plan = planned((good, bad), ROOM, splits=True)
    assert [batch.complete for batch in plan.batches] == [(0,)]
    assert plan.batches[0].place is None  # only one of the ranks has it in a block
    assert list(plan.mismatches) == ["bad"]
    assert "(4,) of float32 on rank 0, and (5,) of float32 on rank 1" in str(plan.mismatches["bad"])
