"""An array is looked at once; another one, or a changed one, is looked at again."""

from typing import Any

import numpy as np
import pytest

from hbmcomm.training.fusion.submissions import Submissions


@pytest.fixture
def queried() -> list[Any]:
    """The arrays of all queries for a place."""
    return []


@pytest.fixture
def submissions(queried: list[Any]) -> Submissions:
    return Submissions(queried.append)


def test_the_same_array_keeps_its_signature_and_an_equal_one_has_an_equal_signature(
    submissions: Submissions, queried: list[Any]
) -> None:
    one, other = np.zeros(4, "f4"), np.zeros(4, "f4")
    _, first = submissions.take("w", one)
    again, kept = submissions.take("w", one)
    assert again is one and kept is first and len(queried) == 1
    array, second = submissions.take("w", other)
    assert array is other and second is first and len(queried) == 2


def test_an_array_that_changes_is_looked_at_again(submissions: Submissions) -> None:
    array = np.zeros(8, "f4")
    assert submissions.take("w", array)[1].shape == (8,)
    array.shape = (2, 4)
    assert submissions.take("w", array)[1].shape == (2, 4)
    array.flags.writeable = False
    with pytest.raises(ValueError, match="must be contiguous and writable"):
        submissions.take("w", array)


@pytest.mark.parametrize("name", [3, None, ("w", 1)])
def test_a_name_is_a_string(submissions: Submissions, name: Any) -> None:
    with pytest.raises(TypeError, match="not a string; submit as str"):
        submissions.take(name, np.zeros(4, "f4"))


def test_an_array_of_another_type_has_another_signature(submissions: Submissions) -> None:
    assert submissions.take("w", np.zeros(4, "f4"))[1].dtype == "float32"
    assert submissions.take("w", np.zeros(4, "f8"))[1].dtype == "float64"
