"""Whether the words of a figure can be read: large enough, on the page, and on no other."""

from collections.abc import Iterator
from itertools import combinations

from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from plots.layout.style import TEXT_POINTS, page_inches

OVERLAP = 3  # pixels at 300 dpi: under a hair


def check_words(figure: Figure) -> None:
    """Lay a figure out at the resolution of its PNG, and fail where it cannot be read."""
    assert figure.get_figwidth() == page_inches()
    figure.set_dpi(300)
    figure.draw_without_rendering()
    words, page = list(_words(figure)), figure.bbox
    assert words
    for text, box, size in words:
        assert size >= TEXT_POINTS >= 7, text
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= page.x1 and box.y1 <= page.y1, text
    for (text, box, _), (other, other_box, _) in combinations(words, 2):
        common = Bbox.intersection(box, other_box)
        overlap = 0.0 if common is None else min(common.width, common.height)
        assert overlap < OVERLAP, f"{text!r} on {other!r}"


def _words(figure: Figure) -> Iterator[tuple[str, Bbox, float]]:
    """Every text that is drawn, with the box it takes in pixels and its size in points."""
    hidden = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            hidden |= set(_unseen(axis)) if axes.axison else set(axis.findobj(Text))
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip() and text not in hidden:
            yield text.get_text(), text.get_window_extent(), text.get_fontsize()


def _unseen(axis: Axis) -> Iterator[Text]:
    """Labels of ticks beyond the ends of the axis; matplotlib keeps them and never draws them."""
    low, high = sorted(axis.get_view_interval())
    for minor in (False, True):
        for place, label in zip(
            axis.get_ticklocs(minor=minor), axis.get_ticklabels(minor=minor), strict=False
        ):
            if not low <= place <= high:
                yield label
