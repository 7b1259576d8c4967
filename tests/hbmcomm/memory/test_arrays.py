"""Arrays in a kind of memory behave as NumPy's own do."""

import gc
import pickle
import re
from collections.abc import Iterator

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hbmcomm
from hbmcomm import OutOfMemory

pytestmark = pytest.mark.usefixtures("emulated_hbm")

# Where the memory comes from: the kind and the nodes of one's own choice.
PLACES = st.sampled_from([{"kind": "regular"}, {"kind": "hbw"}, {"kind": "hbw", "nodes": (0,)}, {}])
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=9)
DTYPES = st.one_of(
    hnp.scalar_dtypes(),
    hnp.byte_string_dtypes(),
    hnp.unicode_string_dtypes(),
    hnp.array_dtypes(allow_subarrays=True),
    hnp.nested_dtypes(),
)
NUMBERS = st.sampled_from(["int8", "uint16", "int64", "float32", "float64", "complex128", ">f8"])

proven = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@proven
@given(SHAPES, DTYPES, PLACES)
def test_an_array_has_the_shape_dtype_and_layout_that_numpy_gives(shape, dtype, place) -> None:
    ours, theirs = hbmcomm.empty(shape, dtype, **place), np.empty(shape, dtype)
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    assert ours.strides == theirs.strides or not ours.size  # of no elements they mean nothing
    assert type(ours) is np.ndarray
    assert ours.flags.c_contiguous and ours.flags.writeable and ours.flags.aligned
    assert ours.ctypes.data % 64 == 0


@proven
@given(SHAPES, DTYPES, PLACES)
def test_zeros_are_zero_even_in_memory_used_before(shape, dtype, place) -> None:
    used = hbmcomm.empty(shape, dtype, **place)
    hbmcomm.full(used.nbytes, 255, "uint8", **place)
    del used
    assert hbmcomm.zeros(shape, dtype, **place).tobytes() == np.zeros(shape, dtype).tobytes()


@proven
@given(hnp.arrays(DTYPES, SHAPES), PLACES)
def test_asarray_copies_what_is_elsewhere_and_keeps_what_is_there(array, place) -> None:
    ours = hbmcomm.asarray(array, **place)
    assert ours.tobytes() == array.tobytes()
    assert ours.dtype == array.dtype
    assert not np.shares_memory(ours, array)
    assert hbmcomm.asarray(ours, **place) is ours


@proven
@given(st.data(), NUMBERS, PLACES)
def test_slicing_and_arithmetic_give_what_numpy_gives(data, dtype, place) -> None:
    theirs = data.draw(hnp.arrays(dtype, hnp.array_shapes(max_dims=3, min_side=1)))
    ours = hbmcomm.asarray(theirs, **place)
    index = data.draw(hnp.basic_indices(theirs.shape))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(ours[index], theirs[index])
        np.testing.assert_array_equal(ours + ours * 2, theirs + theirs * 2)
        np.testing.assert_array_equal(ours.T.sum(axis=0), theirs.T.sum(axis=0))
        ours[index] = 1
        theirs[index] = 1
        np.testing.assert_array_equal(ours, theirs)


@proven
@given(hnp.arrays(DTYPES, SHAPES), PLACES)
def test_pickles_and_copies_carry_the_contents_into_ordinary_memory(array, place) -> None:
    ours = hbmcomm.asarray(array, **place)
    for duplicate in (lambda a: pickle.loads(pickle.dumps(a)), np.copy):
        other, expected = duplicate(ours), duplicate(array)
        assert other.tobytes() == expected.tobytes()
        assert (other.dtype, other.shape) == (expected.dtype, expected.shape)
        assert hbmcomm.source(other) is None


@pytest.fixture
def few_objects() -> Iterator[None]:
    """Collections pass over what pytest and other tests hold, which is most of the time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("few_objects")
@proven
@given(st.integers(1, 100_000), NUMBERS, PLACES, st.data())
def test_a_view_keeps_the_memory_when_the_array_is_gone(length, dtype, place, data) -> None:
    array = hbmcomm.full(length, 3, dtype, **place)
    start = data.draw(st.integers(0, length - 1))
    view = array.view()[start:][::-1].reshape(1, -1)
    del array
    gc.collect()
    others = [hbmcomm.full(length, 4, dtype, **place) for _ in range(3)]
    assert (view == 3).all()
    assert all((other == 4).all() for other in others)


@proven
@given(SHAPES, st.integers(-5, 5) | st.floats(-5, 5) | st.booleans(), PLACES)
def test_full_takes_its_dtype_from_the_value(shape, value, place) -> None:
    ours, theirs = hbmcomm.full(shape, value, **place), np.full(shape, value)
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)


def reordered(data, array):
    """The array with its axes in another order, some of them reversed or with gaps."""
    array = array.transpose(data.draw(st.permutations(range(array.ndim))))
    one = st.sampled_from([1, -1, 2])
    steps = data.draw(st.lists(one, min_size=array.ndim, max_size=array.ndim))
    return array[tuple(slice(None, None, step) for step in steps)]


@proven
@given(hnp.arrays(NUMBERS, SHAPES), st.none() | DTYPES, PLACES, st.data())
def test_arrays_like_another_have_its_shape_dtype_and_order(array, dtype, place, data) -> None:
    array = reordered(data, array)
    for name in ("empty_like", "zeros_like", "ones_like"):
        if name == "ones_like" and dtype is not None and np.dtype(dtype).base.names is not None:
            continue  # NumPy refuses some of them
        ours = getattr(hbmcomm, name)(array, dtype, **place)
        theirs = getattr(np, name)(array, dtype)
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        assert ours.strides == theirs.strides or not ours.size  # of no elements they mean nothing
        assert ours.flags.f_contiguous == theirs.flags.f_contiguous
        assert hbmcomm.source(ours) is not None
        if name == "zeros_like":
            assert ours.tobytes() == theirs.tobytes()
        elif name == "ones_like":
            np.testing.assert_array_equal(ours, theirs)


@proven
@given(hnp.arrays(NUMBERS, SHAPES), PLACES, st.data())
def test_a_copy_keeps_the_order_in_memory(array, place, data) -> None:
    array = reordered(data, array)
    ours = hbmcomm.asarray(array, **place)
    np.testing.assert_array_equal(ours, array)
    assert ours.strides == array.copy(order="K").strides or not ours.size


def test_arrays_like_a_list_are_of_numpys_dtype_for_it() -> None:
    assert hbmcomm.ones_like([[1, 2], [3, 4]]).tolist() == [[1, 1], [1, 1]]
    assert hbmcomm.zeros_like(2.5).dtype == np.float64


def test_full_spreads_an_array_and_casts_as_numpy_does() -> None:
    np.testing.assert_array_equal(hbmcomm.full((2, 3), [1, 2, 3]), np.full((2, 3), [1, 2, 3]))
    assert hbmcomm.full(2, 1.9, "int32").tolist() == np.full(2, 1.9, "int32").tolist()


@pytest.mark.parametrize("dtype", [object, "O", [("a", "i4"), ("b", "O")], np.dtypes.StringDType()])
def test_dtypes_that_hold_python_objects_are_refused(dtype) -> None:
    with pytest.raises(TypeError, match=r"holds Python objects.*fixed-size"):
        hbmcomm.empty(3, dtype)


@pytest.mark.parametrize("make", [hbmcomm.resolve, lambda kind: hbmcomm.empty(3, kind=kind)])
@pytest.mark.parametrize("kind", ["", ["hbw"]])
def test_an_empty_name_or_a_list_is_no_kind(make, kind) -> None:
    with pytest.raises(ValueError, match=f"unknown kind of memory {re.escape(repr(kind))};"):
        make(kind)


@pytest.mark.parametrize("shape", [-1, (2, -3)])
def test_a_shape_that_numpy_refuses_is_refused(shape) -> None:
    with pytest.raises(ValueError):
        hbmcomm.empty(shape)


@pytest.mark.parametrize("shape", [None, "23", (2, "x"), 2.0])
def test_a_shape_of_other_things_than_integers_is_refused_by_their_type(shape) -> None:
    with pytest.raises(TypeError, match="object cannot be interpreted as an integer"):
        hbmcomm.empty(shape)


def test_an_integer_is_a_shape() -> None:
    counts = (0, np.int64(3), np.array(4))
    assert [hbmcomm.empty(count).shape for count in counts] == [(0,), (3,), (4,)]


@pytest.mark.parametrize("make", ["empty", "zeros", "ones"])
def test_no_dtype_is_numpys_own(make: str) -> None:
    assert getattr(hbmcomm, make)(3, None).dtype == getattr(np, make)(3, None).dtype


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        (["abc", "de"], "S"),
        (["abc", "de"], "U"),
        ([1.5, 2.25], "S"),
        (np.array([1.5, 2.25]), "V"),
        (np.array([1.5, 2.25]), "(2,)f4"),
        (np.array([[1], [2]]), "(2,)f4"),
        (["2020-01-01"], "M8"),
        (np.array(["2020-01-01"], "M8[ms]"), "M8"),
        (np.array([3], "m8[h]"), "m8"),
    ],
)
def test_asarray_takes_from_values_what_a_dtype_leaves_open(given, dtype: str) -> None:
    ours, theirs = hbmcomm.asarray(given, dtype), np.array(given, dtype)
    assert (ours.dtype, ours.tobytes()) == (theirs.dtype, theirs.tobytes())
    assert hbmcomm.source(ours) is not None
    assert hbmcomm.asarray(ours, ours.dtype) is ours


@pytest.mark.parametrize(
    ("given", "dtype"),
    [([2**53 + 1, 1.0], "i8"), ([1, 2.5], "S3"), ([(1, 2)], "i4,f8"), ([None, "1.5"], "f8")],
)
def test_asarray_converts_objects_one_by_one_as_numpy_does(given, dtype: str) -> None:
    ours, theirs = hbmcomm.asarray(given, dtype), np.asarray(given, dtype)
    assert (ours.dtype, ours.shape, ours.tobytes()) == (
        theirs.dtype,
        theirs.shape,
        theirs.tobytes(),
    )


@pytest.mark.parametrize(
    ("given", "dtype"), [([300], "u1"), (-1, "u4"), ([2**63, -1], "i8"), ([1j], "f8")]
)
def test_asarray_refuses_objects_that_do_not_fit(given, dtype: str) -> None:
    with pytest.raises((OverflowError, TypeError)):
        hbmcomm.asarray(given, dtype)


def test_asarray_changes_dtype_and_takes_lists() -> None:
    array = hbmcomm.asarray([1, 2, 3], "float32", kind="hbw")
    assert array.dtype == np.float32
    assert hbmcomm.asarray(array, "float64", kind="hbw").tolist() == [1, 2, 3]


def test_asarray_moves_between_kinds() -> None:
    there = hbmcomm.asarray([1, 2, 3], kind="hbw")
    moved = hbmcomm.asarray(there, kind="regular")
    assert moved is not there
    assert moved.tolist() == [1, 2, 3]


def test_a_strict_kind_says_no_before_the_kernel_kills() -> None:
    free = hbmcomm.topology().node(0).available_bytes
    with pytest.raises(OutOfMemory, match=r"hbw: asked for .* on node 0"):
        hbmcomm.empty(free + 2**30, "uint8", kind="hbw")


def test_more_than_an_address_space_is_out_of_memory_too() -> None:
    with pytest.raises(OutOfMemory, match="regular"):
        hbmcomm.empty(2**55, "uint8", kind="regular")


def test_a_big_array_is_all_there_when_it_is_strict() -> None:
    array = hbmcomm.empty(96 * 2**20, "uint8", kind="hbw")
    assert hbmcomm.placement(array) == {0: array.nbytes}
