"""The errors that failures become, where a rank's memory may hold anything."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hbmcomm import CallMismatch, HbmcommError, PeerError
from hbmcomm.transports import tuning
from hbmcomm.transports.native import explained, ffi, lib

NAMES = (4, 7, 9)
STATUS = st.integers(-(2**31), 2**31 - 1) | st.integers(0, lib.HBM_LAST_STATUS + 1)
RANK = st.integers(-(2**31), 2**31 - 1) | st.integers(-1, len(NAMES))
WORD = st.integers(0, 2**64 - 1) | st.integers(0, 255) | st.just(2**64 - 1)
COUNT = st.integers(0, 2**64 - 1)


def error(*fields: int) -> HbmcommError:
    return explained(ffi.new("hbm_failure *", fields), 0, NAMES)


@given(st.tuples(STATUS, RANK, RANK, WORD, COUNT, WORD, COUNT))
def test_every_record_of_a_failure_becomes_an_error(fields: tuple[int, ...]) -> None:
    text = str(error(*fields))
    assert text.endswith("; the communicator is unusable now")
    assert {int(rank) for rank in re.findall(r"\brank (\d+) ", text)} <= set(NAMES)


def test_garbage_names_the_rank_that_has_it() -> None:
    broken = error(lib.HBM_GARBAGE, 1, 0)
    assert isinstance(broken, PeerError)
    assert str(broken).startswith("rank 7 has a control block that holds garbage;")


def test_a_record_of_no_call_is_garbage_of_one_of_both_ranks() -> None:
    for what in (0x7F, 0xFF01, 0xFF000B, 2**64 - 2):
        text = str(error(lib.HBM_MISMATCH, 0, 2, 0, 0, what, 0))
        assert text.startswith("the control block of rank 4 or 9 holds garbage;"), hex(what)


def test_calls_that_differ_are_named() -> None:
    failure = error(lib.HBM_MISMATCH, 0, 2, 0, 0, 1 | 10 << 8 | 1 << 32, 8)
    assert isinstance(failure, CallMismatch)
    assert "rank 4 called Barrier(), rank 9 called Bcast(8 x float32, root=1);" in str(failure)


def test_a_timeout_is_a_number_of_seconds() -> None:
    assert tuning.timeout({}) == 0
    seconds = {"": 0, "60": 60, "5 s": 5}
    assert {text: tuning.timeout({"HBMCOMM_TIMEOUT": text}) for text in seconds} == seconds
    with pytest.raises(HbmcommError, match="HBMCOMM_TIMEOUT=soon: write a whole number"):
        tuning.timeout({"HBMCOMM_TIMEOUT": "soon"})


def test_a_rank_alone_needs_little_memory() -> None:
    """It has no buffers for messages: programs make thousands of communicators of one rank."""
    assert lib.hbm_control_bytes(1) <= 2**15 < lib.hbm_slot_bytes() * 8 < lib.hbm_control_bytes(2)
