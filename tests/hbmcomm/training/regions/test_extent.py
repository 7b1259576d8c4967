"""The extents of regions do not overlap, and forms survive their description."""

import itertools
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hbmcomm import PeerError
from hbmcomm.training.regions.extent import arrange, decoded, form_of

DTYPES = ("f4", "f8", "i1", "u8", "c16", "?", ">i2", "S3", "m8[s]")


@given(st.lists(st.integers(1, 10_000), max_size=20))
def test_extents_are_aligned_and_apart(capacities: list[int]) -> None:
    extents, nbytes = arrange({str(number): capacity for number, capacity in enumerate(capacities)})
    spans = [(0, 0), (nbytes, nbytes)]
    for number, extent in extents.items():
        assert extent.capacity == capacities[int(number)]
        assert extent.data % 128 == extent.head % 128 == 0
        assert extent.posted < extent.description.start < extent.description.stop <= extent.released
        spans += [(extent.head, extent.released + 8), (extent.data, extent.data + extent.capacity)]
    spans.sort()
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(spans))


@given(st.sampled_from(DTYPES), st.lists(st.integers(0, 9), max_size=8))
def test_a_description_gives_the_form_again(dtype: str, shape: list[int]) -> None:
    form = form_of(shape, dtype)
    assert decoded(form.encoded(), form.nbytes) == form
    assert form.nbytes == np.empty(shape, dtype).nbytes
    if form.nbytes:
        with pytest.raises(PeerError, match="same version of hbmcomm"):
            decoded(form.encoded(), form.nbytes - 1)


@given(st.binary(min_size=88, max_size=88))
def test_no_description_makes_a_reader_leave_its_region(description: bytes) -> None:
    try:
        form = decoded(description, 1000)
    except PeerError:
        return
    assert 0 <= form.nbytes <= 1000


def test_a_structure_is_no_plain_number() -> None:
    for dtype in (object, [("a", "f4"), ("b", "i4")], "S", "V", "U"):
        with pytest.raises(TypeError, match="take numbers"):
            form_of(3, dtype)
    assert struct.calcsize("16sQ8Q") == len(form_of((), "f4").encoded())


def test_a_shape_may_have_integers_of_numpy_and_no_others() -> None:
    assert form_of((np.int8(100), np.int32(2)), "f4").nbytes == 800
    assert form_of([np.int32(65536)] * 2, "f4").nbytes == 2**34
    with pytest.raises(TypeError, match="integer"):
        form_of(1.5, "f4")
