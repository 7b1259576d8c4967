"""Everyone can distinguish the colours of the palette, on paper, in grey and on a dark screen."""

from itertools import combinations

import matplotlib
import numpy as np

from experiments.model.contender_names import TORCH_GROUPS
from experiments.model.launch import TRANSPORTS
from plots.layout import style

# Machado, Oliveira and Fernandes, IEEE TVCG 15 (2009) 1291, severity 1.0, linear RGB.
BLINDNESS = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def linear(colour: str) -> np.ndarray:
    """sRGB as light."""
    value = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def lab(light: np.ndarray) -> np.ndarray:
    """CIE L*a*b* (D65) of linear RGB."""
    matrix = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(matrix) @ np.clip(light, 0, 1) / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(one: str, other: str) -> float:
    """WCAG 2 contrast ratio."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_no_two_share_a_marker_and_every_colour_has_a_dark_one() -> None:
    for looks in (style.KINDS, style.PARTIES):
        assert len({look.marker for look in looks.values()}) == len(looks), looks
        assert {look.colour for look in looks.values()} <= set(style.DARK), looks


def test_no_two_transports_share_a_line() -> None:
    dashes = [str(stroke.dashes) for stroke in style.TRANSPORTS.values()]
    assert len(set(dashes)) == len(dashes)


def test_every_transport_of_the_experiments_has_a_line_in_their_order() -> None:
    known = [*TRANSPORTS, *TORCH_GROUPS]
    assert [name for name in style.TRANSPORTS if name in known] == known


def test_the_two_kinds_of_the_paper_differ_in_grey() -> None:
    regular, hbw = (lab(linear(style.KINDS[kind].colour))[0] for kind in ("regular", "hbw"))
    assert abs(regular - hbw) > 20


def test_the_two_kinds_of_the_paper_differ_without_a_sort_of_cone() -> None:
    colours = [linear(style.KINDS[kind].colour) for kind in ("regular", "hbw")]
    for blindness, matrix in BLINDNESS.items():
        regular, hbw = (lab(np.array(matrix) @ colour) for colour in colours)
        assert np.linalg.norm(regular - hbw) > 25, blindness


def test_series_and_text_stand_out_from_the_paper_light_and_dark() -> None:
    series = [look.colour for look in style.KINDS.values()]
    for colour in (*series, style.INK, style.MUTED, style.ALERT):
        least = 3.0 if colour in series else 4.5
        assert contrast(colour, style.PAPER) >= least, colour
        assert contrast(style.DARK[colour], style.DARK[style.PAPER]) >= least, colour


def test_no_two_kinds_share_a_dark_colour() -> None:
    for one, other in combinations(style.KINDS.values(), 2):
        assert style.DARK[one.colour] != style.DARK[other.colour]


def test_a_users_settings_do_not_reach_the_figures() -> None:
    with matplotlib.rc_context({"font.size": 20, "axes.grid.axis": "x"}):
        with style.style():
            assert matplotlib.rcParams["font.size"] == style.TEXT_POINTS >= 7
            assert matplotlib.rcParams["axes.grid.axis"] == "both"
        assert matplotlib.rcParams["font.size"] == 20
