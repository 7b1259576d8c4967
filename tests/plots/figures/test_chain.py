"""The chain's figure: a panel per step, a mark per operation and transport at its ratio."""

import pytest
from matplotlib.axes import Axes

from plots.figures.chain import FIGURE as chain
from plots.figures.chain import MOST
from tests.campaigns import find
from tests.plots.figures.reading import only

ARMS = ("host", "host-again", "userland", "docker-default-one", "docker-tuned-one")


def marks(axes: Axes) -> list[float]:
    """Where the large marks are."""
    return [
        float(line.get_xdata()[0])  # type: ignore[arg-type,index]
        for line in axes.lines
        if line.get_marker() in ("s", "o")
    ]


def test_every_step_has_a_panel_and_every_operation_a_mark() -> None:
    campaign = find(arms=ARMS, kinds=("regular",), mpis=("openmpi", "mpich"))
    panels = only(chain, campaign).figure.axes
    assert [axes.get_title(loc="left") for axes in panels] == ["userland", "tuned", "default"]
    for axes in panels:
        assert len(marks(axes)) == 2 * 3 * 2  # MPIs, operations, transports
    rules = campaign.whole_steps[campaign.whole_steps["step"] == "rules"]
    shown = rules[rules["transport"] != "pickle"]["ratio"]
    assert sorted(marks(panels[2])) == pytest.approx(sorted(shown))


def test_what_lies_beyond_the_axis_is_at_its_end() -> None:
    campaign = find(arms=ARMS, kinds=("regular",))
    campaign.whole_steps.loc[:, ["ratio", "low", "high"]] = [9.0, 8.0, 10.0]
    for axes in only(chain, campaign).figure.axes:
        assert axes.get_xlim()[1] == MOST
        assert not marks(axes)
        beyond = [line for line in axes.lines if line.get_marker() == ">"]
        assert {float(line.get_xdata()[0]) for line in beyond} == {MOST}  # type: ignore[arg-type,index]
        assert {text.get_text() for text in axes.texts} >= {"9.00"}


def test_the_words_hold_every_ratio_and_what_was_lost() -> None:
    drawing = only(chain, find(arms=ARMS, kinds=("regular",)))
    assert drawing.description.count("95 % interval") == 3 * 3 * 2
    assert "Default: the further rules of this profile: seccomp" in drawing.caption
