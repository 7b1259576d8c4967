"""Where bytes are and should be, in values and words."""

import pytest

from experiments.emulation import placement_check
from experiments.emulation.placement_check import Pages, Promise
from experiments.emulation.question import PAGE


@pytest.mark.parametrize(
    ("promise", "pages", "holds"),
    [
        (Promise((4,)), Pages({4: 8192}), True),
        (Promise((4,)), Pages({4: 8192, 5: 1}), False),
        (Promise((4,)), Pages({5: 8192}), False),
        (Promise((4,)), Pages({4: 8191}, missing=1), False),
        (Promise((4,)), Pages({}), False),
        (Promise((4,)), Pages({}, error="refused"), False),
        (Promise((4, 5)), Pages({4: 8192}), True),
        (Promise((4, 5), evenly=True), Pages({4: 8192, 5: 8192}), True),
        (Promise((4, 5), evenly=True), Pages({4: 4096, 5: 12288}), True),
        (Promise((4, 5), evenly=True), Pages({4: 4000, 5: 12384}), False),
        (Promise((4, 5), evenly=True), Pages({4: 16384}), False),
    ],
)
def test_a_promise_holds_or_does_not(promise: Promise, pages: Pages, holds: bool) -> None:
    assert promise.holds(pages, PAGE) is holds


def test_places_in_words() -> None:
    assert str(Pages({4: 4096})) == "4"
    assert str(Pages({4: 4096, 5: 4096})) == "4-5 evenly"
    assert str(Pages({4: 30000, 0: 10000})) == "4 (75.0%), 0 (25.0%)"
    assert str(Pages({4: 4096}, missing=4096)) == "4, 4,096 bytes nowhere"
    assert str(Pages({})) == "none"
    assert str(Pages({}, error="KindUnavailable: no HBM")) == "KindUnavailable: no HBM"
    assert str(Promise((0, 1, 3))) == "0-1,3"
    assert str(Promise((4, 5), evenly=True)) == "4-5 evenly"


def test_ranks_that_are_alike_are_told_once() -> None:
    assert placement_check.ranks(["4", "4"]) == "every rank: 4"
    assert placement_check.ranks(["4", "5"]) == "rank 0: 4; rank 1: 5"


def test_answers_become_places() -> None:
    answer = {"pages": {"4": 100}, "witness": {"4": 140}}
    assert placement_check.of(answer, 120) == Pages({4: 100}, missing=20)
    assert placement_check.of(answer, 90) == Pages({4: 100}, missing=-10)
    assert placement_check.of(answer, 120, by="witness", more=True) == Pages({4: 140})
    assert placement_check.of(answer, 150, by="witness", more=True) == Pages({4: 140}, missing=10)
    assert placement_check.of({"error": "OutOfMemory", "text": "no"}, 1).error == "OutOfMemory: no"
    assert placement_check.of(None, 1).error == "not looked at"
    assert placement_check.of({"pages": {"4": 1}}, 1, by="witness").error == "not looked at"


def test_views_add_up_and_what_lacks_in_one_is_not_made_up_for_by_another() -> None:
    assert placement_check.together([Pages({4: 1}), Pages({4: 2, 5: 3})]) == Pages({4: 3, 5: 3})
    assert placement_check.together([Pages({4: 9}), Pages({4: 2}, missing=3)]) == Pages(
        {4: 11}, missing=3
    )
    assert placement_check.together([Pages({4: 1}), Pages({}, error="refused")]).error == "refused"


def test_numbers_as_the_kernel_lists_them() -> None:
    assert placement_check.numbers([8, 0, 1, 2]) == "0-2,8"
    assert placement_check.numbers([]) == "none"
