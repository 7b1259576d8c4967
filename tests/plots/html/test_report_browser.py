"""The page in a real browser: loads alone, fits, can be reached by keyboard, in light and dark."""

import json
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webdriver import WebDriver

from tests.awaiting import wait_for
from tests.plots.html.window import prefer, resize

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(quick_page: Path) -> str:
    """Where the page of the quick campaign is."""
    return quick_page.as_uri()


@pytest.fixture
def page(chromium: Any, address: str) -> WebDriver:
    """The page, freshly opened 1400 pixels wide, its logs empty before."""
    for log in ("browser", "performance"):
        chromium.get_log(log)
    resize(chromium, 1400)
    chromium.get(address)
    return chromium  # type: ignore[no-any-return]


def colour(browser: WebDriver, selector: str, what: str) -> str:
    script = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
    return str(browser.execute_script(script, selector, what))


def test_the_console_stays_empty(page: Any) -> None:
    assert page.get_log("browser") == []


def test_nothing_is_loaded_but_the_page_itself(page: Any, address: str) -> None:
    messages = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    asked = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    loaded = {
        params["request"]["url"]
        for params in asked
        if not params["request"]["url"].startswith("data:")
    }
    assert loaded == {address}


def test_every_figure_has_size_and_a_name(page: WebDriver) -> None:
    figures = page.find_elements(By.CSS_SELECTOR, "figure svg")
    assert len(figures) == 4
    for figure in figures:
        assert figure.size["width"] > 300 and figure.size["height"] > 200
        assert figure.accessible_name
        assert figure.aria_role in ("img", "image")


@pytest.mark.parametrize("width", [400, 1200, 1900])
def test_a_screen_holds_each_figure_and_its_words_are_below_it(page: WebDriver, width: int) -> None:
    resize(page, width)
    for figure in page.find_elements(By.CSS_SELECTOR, "figure"):
        drawing, words = (
            figure.find_element(By.CSS_SELECTOR, selector).rect
            for selector in ("svg", "figcaption")
        )
        assert 200 < drawing["height"] <= 900  # the window's
        assert words["y"] >= drawing["y"] + drawing["height"]
        assert drawing["width"] >= min(width - 100, 500)  # narrower, its words are too small


@pytest.mark.parametrize("width", [400, 1400])
def test_nothing_overflows_sideways(page: WebDriver, width: int) -> None:
    resize(page, width)
    page.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    wide, seen = page.execute_script(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert wide <= seen <= width


@pytest.mark.rare
def test_the_tab_key_reaches_every_scrolling_table(page: WebDriver) -> None:
    page.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    wanted = {
        table.id for table in page.find_elements(By.CSS_SELECTOR, ".scroll") if table.is_displayed()
    }
    reached = set()
    for _ in range(80):
        page.switch_to.active_element.send_keys(Keys.TAB)
        reached.add(page.switch_to.active_element.id)
    assert len(wanted) >= 6
    assert wanted <= reached


def test_the_first_tab_stop_skips_to_the_answers(page: WebDriver) -> None:
    page.switch_to.active_element.send_keys(Keys.TAB)
    link = page.switch_to.active_element
    assert link.text == "Skip to the answers"
    assert link.rect["x"] >= 0
    link.send_keys(Keys.ENTER)
    assert page.current_url.endswith("#answers")


def test_a_focused_table_scrolls_by_keyboard(page: WebDriver) -> None:
    resize(page, 400)
    table = page.find_element(By.CSS_SELECTOR, '.scroll[aria-labelledby="table-times"]')
    before = page.execute_script(
        "return arguments[0].scrollWidth > arguments[0].clientWidth", table
    )
    assert before

    def scrolls() -> bool:
        """Press again each time: a key may come before the page has its new width."""
        table.send_keys(Keys.ARROW_RIGHT)
        return int(table.get_property("scrollLeft")) > 0

    wait_for(scrolls, "scrolled table", 30)


def test_dark_pages_have_dark_figures(page: WebDriver) -> None:
    seen = {}
    for name in ("light", "dark"):
        prefer(page, name)
        seen[name] = (
            colour(page, "body", "backgroundColor"),
            colour(page, "figure svg path", "fill"),
        )
    prefer(page, "light")
    assert seen["light"] == ("rgb(243, 245, 247)", "rgb(255, 255, 255)")
    assert seen["dark"] == ("rgb(14, 18, 22)", "rgb(22, 27, 33)")


def test_on_paper_tables_are_whole_and_light(page: Any) -> None:
    prefer(page, "dark")
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    limit = colour(page, ".scroll", "maxHeight")
    ink = colour(page, "figure svg path", "fill")
    hidden = page.execute_script(
        "return [...document.querySelectorAll('figure, table')]"
        ".filter((each) => !each.checkVisibility() && !each.closest('dialog')).length"
    )
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert limit == "none"
    assert ink == "rgb(255, 255, 255)"
    assert hidden == 0


def test_a_link_to_what_is_folded_opens_it(page: Any, address: str) -> None:
    folded = page.find_element(By.ID, "table-twins")
    assert not folded.is_displayed()
    page.get(f"{address}#table-twins")
    assert page.find_element(By.ID, "table-twins").is_displayed()
