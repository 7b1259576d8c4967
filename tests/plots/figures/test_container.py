"""Figure 4: the cost of a container against the noise floor."""

import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from experiments.analysis.campaign import Campaign
from experiments.analysis.confounders import Confounders
from experiments.analysis.data_path import DataPaths, Loss
from plots.figures.container import FIGURE as container
from plots.figures.container import MOST_RATIO, Sight, ticks
from plots.layout.figure_layout import Drawing
from plots.layout.style import BAND
from tests.campaigns import changed, find
from tests.plots.figures.reading import drawn, legend, marks, message, only

TWINS = ("host", "host-again")
LAYOUTS = ("one", "per-rank", "isolated")
NINE = tuple(
    f"docker-{profile}-{layout}"
    for profile in ("default", "tuned", "privileged")
    for layout in LAYOUTS
)


@pytest.fixture(scope="module")
def plain() -> Campaign:
    """The plain campaign; tests only read it."""
    return find()


@pytest.fixture(scope="module")
def drawing(plain: Campaign) -> Drawing:
    """The figure of the plain campaign; tests only read it."""
    return only(container, plain)


def bands(drawing: Drawing) -> list[Rectangle]:
    patches = [patch for axes in drawing.figure.axes for patch in axes.patches]
    return [patch for patch in patches if to_hex(patch.get_facecolor()) == BAND]  # type: ignore[misc]


def test_every_cell_is_a_mark_at_its_ratio(plain: Campaign, drawing: Drawing) -> None:
    ratios = [line.get_xdata()[0] for line in marks(drawing)]
    assert sorted(ratios) == pytest.approx(sorted(plain.containers["ratio"]))


def test_the_noise_floor_is_a_band_around_one_in_every_panel(
    plain: Campaign, drawing: Drawing
) -> None:
    assert len(bands(drawing)) == len(drawing.figure.axes)
    band = bands(drawing)[0]
    assert band.get_x() == pytest.approx(1 - plain.floor)
    assert band.get_x() + band.get_width() == pytest.approx(1 + plain.floor)


def test_without_the_twin_there_is_no_band_and_the_legend_says_so() -> None:
    drawing = only(container, find(arms=("host", "docker-tuned-one")))
    assert bands(drawing) == []
    assert "no noise floor" in legend(drawing)


def test_one_block_has_no_intervals() -> None:
    drawing = only(container, find(blocks=1))
    assert not any(axes.collections for axes in drawing.figure.axes)
    assert "Median over 1 block, paired" in message(drawing)


def test_two_per_cent_is_marked_in_every_panel(drawing: Drawing) -> None:
    for axes in drawing.figure.axes:
        edges = {line.get_xdata()[0] for line in axes.get_lines() if line.get_marker() == "None"}
        assert {0.98, 1.02} < edges


def test_where_medians_leave_the_narrow_axis_it_holds_them_and_two_per_cent_can_be_seen(
    drawing: Drawing,
) -> None:
    assert drawing.figure.axes[0].get_xscale() == "log"
    assert drawing.figure.axes[0].get_xlim()[1] <= MOST_RATIO
    campaign = find()
    campaign.containers.loc[0, ["ratio", "low", "high"]] = [9.0, 8.0, 900.0]
    wide = only(container, campaign)
    axes = wide.figure.axes[0]
    low, high = axes.get_xlim()
    assert 9.0 < high < 12  # the end of an interval has no say
    assert "logarithmic beyond" in message(wide)
    places = axes.transData.transform([(ratio, 0) for ratio in (low, 1.0, 1.02, high)])[:, 0]
    assert places[2] - places[1] > 0.03 * (places[3] - places[0])
    ticks = [tick for tick in axes.get_xticks() if low <= tick <= high]
    assert 1 in ticks and len(ticks) > 1


def test_a_data_path_that_differs_is_reported_on_the_figure(plain: Campaign) -> None:
    loss = Loss("openmpi", "docker-tuned-one", ("single copy",))
    drawing = only(container, changed(plain, data_paths=DataPaths((loss,))))
    differs = "The data path differs from the host's: Open MPI lost single copy in Docker, tuned"
    assert "The data path differs" in message(drawing)
    assert drawing.caption.endswith(f" {differs}, one container.")


def test_many_caveats_are_counted_and_left_to_the_report(plain: Campaign) -> None:
    straying = {"arm": "docker-tuned-one", "ranks": 2, "bytes": 1024, "straying": 1, "copies": 3}
    straying |= {"ratio": 0.8, "low": 0.79, "high": 0.81}
    beside = Confounders(straying_copies=pd.DataFrame([straying] * 5))
    drawing = only(container, changed(plain, confounders=beside))
    assert "5 caveats beside the container itself: see the report." in drawing.caption
    assert "The control differs" not in drawing.caption


@pytest.mark.parametrize("count", [1, 2, 3])
def test_what_left_and_right_mean_is_reported_once(count: int) -> None:
    drawing = only(container, find(operations=("bcast", "gather", "allreduce")[:count]))
    shown = [axes.get_xlabel() for axes in drawing.figure.axes[-count:]]
    assert sum("container faster · slower" in label for label in shown) == 1


def test_rows_are_grouped_by_transport_layout_and_profile() -> None:
    arms = (*TWINS, *NINE[:3], "docker-tuned-one")
    campaign = find(arms=arms, transports=("direct", "mpi"), sizes=(1024, 4096), blocks=2)
    heads = [
        text.get_text() for axes in only(container, campaign).figure.axes for text in axes.texts
    ]
    assert heads == [
        "direct, one container, Docker, default",
        "direct, one container, tuned",
        "direct, a container per rank, default",
        "direct, isolated containers, default",
        "mpi, one container, default",
        "mpi, one container, tuned",
        "mpi, a container per rank, default",
        "mpi, isolated containers, default",
    ]


ONE_EACH = [f"-{name}-{layout}" for name in ("direct", "mpi") for layout in LAYOUTS]


@pytest.mark.parametrize(
    ("other", "sizes", "endings"),
    [
        ("mpi", 3, ["-direct", "-mpi"]),
        ("mpi-private", 3, ["-direct", "-mpi-private"]),  # has no look of its own
        ("mpi", 10, ONE_EACH),
    ],
)
def test_what_is_more_than_a_screen_is_drawn_on_several(
    other: str, sizes: int, endings: list[str]
) -> None:
    campaign = find(
        arms=(*TWINS, *NINE),
        transports=("direct", other),
        kinds=("regular",),
        operations=("bcast",),
        sizes=tuple(2**power for power in range(10, 10 + sizes)),
        blocks=1,
    )
    every = drawn(container, campaign)
    assert [figure.name for figure in every] == [f"container{end}-2-ranks" for end in endings]
    for figure in every:
        assert figure.figure.get_size_inches()[1] < 8


def test_more_operations_than_fit_side_by_side_go_on_another_drawing() -> None:
    campaign = find(blocks=1)
    more = campaign.containers[campaign.containers["operation"] == "bcast"].assign(
        operation="reduce"
    )
    campaign = changed(
        campaign, containers=pd.concat([campaign.containers, more], ignore_index=True)
    )
    names = [figure.name for figure in drawn(container, campaign)]
    assert names == ["container-2-ranks", "container-2-2-ranks"]


def test_every_mark_can_be_asked_what_it_shows(plain: Campaign, drawing: Drawing) -> None:
    asked = {line.get_gid() for line in marks(drawing)}
    assert asked == {f"cell-{number}" for number in drawing.marks}
    assert len(asked) == len(plain.containers)
    assert drawing.marks["0"].startswith("Docker, tuned, one container, Allreduce, direct, 1 KiB")


def test_a_missing_arm_is_a_figure_that_says_so() -> None:
    drawing = only(container, find(arms=("host",), missing={"docker": "no engine answers"}))
    assert drawing.name == "container-docker"
    assert [text.get_text() for text in drawing.figure.axes[0].texts] == [
        "Not measured. docker: no engine answers"
    ]


def test_the_description_lists_what_lies_beyond_the_floor(drawing: Drawing) -> None:
    assert "Beyond the noise floor: none." in only(container, find(sizes=(1024,))).description
    assert "Allreduce, pickle, 4 MiB, regular: 1.2" in drawing.description


def test_a_stretched_axis_has_ticks_that_can_be_read() -> None:
    expected = {(0.39, 1.5): [0.5, 0.9, 1, 1.4], (0.4, 2.3): [0.5, 0.9, 1, 2]}
    expected[0.87, 10.4] = [0.9, 1, 1.4, 10]
    shown = {ends: ticks(Sight([1024], ["regular"], *ends, True)) for ends in expected}
    assert shown == expected
