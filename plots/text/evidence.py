"""Which drawings an answer shows, so that each has one place on the page."""

from collections.abc import Sequence

from plots.layout.figure_layout import Drawing
from plots.text.answers import Answer

Evidence = tuple[Answer, Drawing | None, list[Drawing]]
"""An answer; the first drawing of its topic, where that has a place further up the page; the
drawings of its topic that have none."""


def evidence(
    answers: Sequence[Answer], drawn: Sequence[Drawing], leading: Drawing | None = None
) -> tuple[list[Evidence], list[Drawing]]:
    """Each answer with its drawings, and the drawings that no answer names.

    Args:
        leading: the drawing above all answers.
    """
    left = [each for each in drawn if each is not leading]
    found: list[Evidence] = []
    for answer in answers:
        first = next((each for each in drawn if each.topic == answer.figure), None)
        own = [each for each in left if each.topic == answer.figure]
        left = [each for each in left if each.topic != answer.figure]
        found.append((answer, None if first in own else first, own))
    return found, left
