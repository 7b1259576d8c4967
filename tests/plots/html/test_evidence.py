"""Every drawing has one place on the page: in the first answer that names it, or in none."""

from plots.html.report import evidence
from plots.layout.figure_layout import Drawing, Page
from plots.text.claims import Answer


def drawing(topic: str, part: str = "") -> Drawing:
    return Drawing(topic, part, topic, "", "", Page())


def answer(figure: str) -> Answer:
    return Answer("How much?", "So much.", figure=figure)


def test_the_first_answer_that_names_a_drawing_holds_it_and_the_next_points_to_it() -> None:
    times, first, second, plain = drawing("times"), answer("times"), answer("times"), answer("")
    assert evidence([plain, first, second], [times]) == (
        [(plain, None, []), (first, None, [times]), (second, times, [])],
        [],
    )


def test_an_answer_opens_with_one_drawing_and_holds_the_others_of_its_topic() -> None:
    every = [drawing("times", part) for part in ("-mpich", "-openmpi", "-impi")]
    asked = answer("times")
    assert evidence([asked], every) == ([(asked, None, every)], [])


def test_a_topic_is_no_beginning_of_another() -> None:
    chart, chart_of_places = drawing("placement", "-2-ranks"), drawing("placement-map", "-2-ranks")
    asked = answer("placement")
    assert evidence([asked], [chart_of_places, chart]) == (
        [(asked, None, [chart])],
        [chart_of_places],
    )


def test_a_drawing_that_leads_the_page_has_its_place_already() -> None:
    leading, other, asked = drawing("chain", "-one"), drawing("chain", "-isolated"), answer("chain")
    places = evidence([asked], [leading, other], leading)
    assert places == ([(asked, leading, [other])], [])


def test_what_no_answer_names_is_left_and_what_was_not_drawn_is_not_missed() -> None:
    drift, asked = drawing("drift"), answer("speedup")
    assert evidence([asked], [drift]) == ([(asked, None, [])], [drift])
