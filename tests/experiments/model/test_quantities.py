"""Numbers have the digits that they are worth, whatever the locale."""

import locale
import math

from experiments.model.quantities import (
    list_text,
    parse_size,
    percent_text,
    ratio_text,
    seconds_text,
    size_text,
)


def test_a_size_is_written_as_it_is_read() -> None:
    sizes = {0: "0 B", 1000: "1000 B", 3 * 2**19: "1536 KiB", 2**26: "64 MiB", 2**41: "2048 GiB"}
    for count, text in sizes.items():
        assert (size_text(count), parse_size(text)) == (text, count)


def test_seconds_have_three_significant_digits_and_a_unit() -> None:
    for seconds, text in (
        *((1.234e-6, "1.23 µs"), (9.994e-7, "999 ns"), (9.999e-7, "1.00 µs")),
        *((0.01234, "12.3 ms"), (5.6e-7, "560 ns"), (12.3456, "12.3 s"), (12.0, "12.0 s")),
        *((9.996e-4, "1.00 ms"), (0.0, "0 ns"), (math.nan, "–")),
    ):
        assert seconds_text(seconds) == text, seconds


def test_a_ratio_has_the_digits_that_it_is_worth() -> None:
    for ratio, text in (
        *((1.0449, "1.04"), (0.5, "0.50"), (9.996, "10.0"), (12.34, "12.3"), (99.96, "100")),
        *((123.4, "123"), (5644.0, "5644"), (0.1, "0.10"), (0.096, "0.10"), (0.0041, "0.004")),
        (math.nan, "–"),
    ):
        assert ratio_text(ratio) == text, ratio


def test_a_share_is_in_per_cent() -> None:
    texts = (percent_text(0.0314), percent_text(0.934, 0), percent_text(math.nan))
    assert texts == ("3.1 %", "93 %", "–")


def test_the_locale_changes_nothing() -> None:
    before = locale.setlocale(locale.LC_NUMERIC)
    for name in ("de_DE.UTF-8", "C.UTF-8", "C"):
        try:
            locale.setlocale(locale.LC_NUMERIC, name)
        except locale.Error:
            continue
        assert seconds_text(1.5e-6) == "1.50 µs"
    locale.setlocale(locale.LC_NUMERIC, before)


def test_numbers_are_listed_as_the_kernel_does() -> None:
    lists = {(): "none", (3,): "3", (8, 0, 1, 2, 3): "0-3,8", (4, 5): "4-5"}
    assert {numbers: list_text(numbers) for numbers in lists} == lists
