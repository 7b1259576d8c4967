"""Which drawing an answer shows, so that each has one place on the page."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from plots.layout.figure_layout import Drawing
from plots.text.answers import Answer


@dataclass(frozen=True)
class Evidence:
    """An answer and the drawings of its topic.

    Attributes:
        above: the first of them, where it has a place further up the page.
        figure: the first of them otherwise; None where there is none.
        further: the others, of other MPIs, rank counts or layouts.
    """

    answer: Answer
    above: Drawing | None = None
    figure: Drawing | None = None
    further: list[Drawing] = field(default_factory=list)


def evidence(
    answers: Sequence[Answer], drawn: Sequence[Drawing], leading: Drawing | None = None
) -> tuple[list[Evidence], list[Drawing]]:
    """Each answer with its drawings, and the drawings that no answer names.

    Args:
        leading: the drawing above all answers.
    """
    left = [each for each in drawn if each is not leading]
    found = []
    for answer in answers:
        first = next((each for each in drawn if each.topic == answer.figure), None)
        further = [each for each in left if each.topic == answer.figure]
        left = [each for each in left if each.topic != answer.figure]
        if first in further:
            found.append(Evidence(answer, None, first, further[1:]))
        else:
            found.append(Evidence(answer, first, None, further))
    return found, left
