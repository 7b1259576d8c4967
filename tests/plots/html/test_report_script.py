"""The page's script in a real browser: samples by click and key, filters, and nothing lost without.

The campaign has two profiles, two layouts and two MPIs.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select

from tests.plots.html.window import resize

pytestmark = pytest.mark.browser

VERDICTS = ("differs", "equivalent", "bounded", "too few blocks")


@pytest.fixture
def page(chromium: Any, arms_page: Path) -> Iterator[WebDriver]:
    """The page, freshly opened; its console must stay empty."""
    chromium.get_log("browser")
    resize(chromium, 1400)
    chromium.get(arms_page.as_uri())
    yield chromium
    assert chromium.get_log("browser") == []


def view(page: WebDriver) -> WebElement:
    return page.find_element(By.ID, "view")


def part(page: WebDriver, name: str) -> WebElement:
    return view(page).find_element(By.CSS_SELECTOR, f'[data-part="{name}"]')


def buttons(page: WebDriver) -> list[WebElement]:
    return page.find_elements(By.CSS_SELECTOR, "tr[data-cell] button")


def press(page: WebDriver, key: str) -> None:
    page.switch_to.active_element.send_keys(key)


def test_every_row_opens_its_samples_by_key_and_gives_the_focus_back(page: WebDriver) -> None:
    every = buttons(page)
    assert len(every) == len(page.find_elements(By.CSS_SELECTOR, "tr[data-cell]")) == 144
    every[3].send_keys(Keys.ENTER)
    assert view(page).is_displayed()
    inside = "return arguments[0].contains(document.activeElement)"
    assert page.execute_script(inside, view(page))
    press(page, Keys.ESCAPE)
    assert not view(page).is_displayed()
    assert page.switch_to.active_element == every[3]


def test_the_tab_key_leads_to_the_ratios(page: WebDriver) -> None:
    first = buttons(page)[0]
    table = first.find_element(By.XPATH, "ancestor::div[@role='region']")
    page.execute_script("arguments[0].focus()", table)
    press(page, Keys.TAB)
    assert page.switch_to.active_element == first
    assert "samples of Docker, default, one container" in first.accessible_name


def test_the_table_is_one_stop_of_the_tab_key_and_arrows_lead_through_it(page: WebDriver) -> None:
    every = buttons(page)
    assert [button.get_attribute("tabindex") for button in every] == ["0"] + ["-1"] * (
        len(every) - 1
    )
    every[0].send_keys(Keys.ARROW_DOWN)
    assert page.switch_to.active_element == every[1]
    press(page, Keys.END)
    assert page.switch_to.active_element == every[-1]
    press(page, Keys.ARROW_DOWN)  # there is none below
    press(page, Keys.ARROW_UP)
    assert page.switch_to.active_element == every[-2]
    press(page, Keys.TAB)
    assert page.switch_to.active_element not in every


def test_the_view_shows_both_sides_of_every_block(page: WebDriver) -> None:
    buttons(page)[0].send_keys(Keys.ENTER)
    drawing = part(page, "drawing").find_element(By.TAG_NAME, "svg")
    assert drawing.size["width"] > 400 and drawing.accessible_name.startswith("Samples of 2 blocks")
    for side in ("host", "arm"):
        assert len(drawing.find_elements(By.CSS_SELECTOR, f".{side} circle")) == 2 * 30
    rows = part(page, "rows").find_elements(By.TAG_NAME, "tr")
    assert len(rows) == 2
    for row in rows:
        cells = row.find_elements(By.TAG_NAME, "td")
        ratio = float(cells[2].text)
        host, arm = (float(cell.text.split()[0]) for cell in cells[:2])
        assert cells[3].text == cells[4].text == "30"
        assert cells[0].text.split()[1] != cells[1].text.split()[1] or ratio == pytest.approx(
            arm / host, rel=0.02
        )
    message = part(page, "said").text
    assert message.startswith("Docker, default, one container over host: ")
    assert any(
        f", {verdict}. 2 paired blocks; every sample is drawn." in message for verdict in VERDICTS
    )
    assert part(page, "said").get_attribute("aria-live") == "polite"


def test_keys_and_buttons_lead_to_the_neighbours(page: WebDriver) -> None:
    buttons(page)[0].send_keys(Keys.ENTER)
    first = part(page, "title").text
    press(page, Keys.ARROW_RIGHT)
    second = part(page, "title").text
    part(page, "after").send_keys(Keys.ENTER)
    third = part(page, "title").text
    assert len({first, second, third}) == 3
    part(page, "before").send_keys(Keys.ENTER)
    press(page, Keys.ARROW_LEFT)
    assert part(page, "title").text == first
    press(page, Keys.ARROW_LEFT)  # there is none before the first
    assert part(page, "title").text == first
    part(page, "close").click()
    assert not view(page).is_displayed()


def test_a_mark_of_the_forest_plot_opens_its_cell_and_names_it(page: WebDriver) -> None:
    mark = page.find_element(By.CSS_SELECTOR, "svg.drawing [data-cell]")
    shown = mark.find_element(By.TAG_NAME, "title").get_attribute("textContent")
    page.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", mark)
    box = page.execute_script(
        "const b = arguments[0].getBoundingClientRect();"
        "return [(b.left + b.right) / 2, (b.top + b.bottom) / 2]",
        mark,
    )
    for kind in ("mousePressed", "mouseReleased"):
        event = {"type": kind, "x": box[0] + 4, "y": box[1], "button": "left", "clickCount": 1}
        page.execute_cdp_cmd("Input.dispatchMouseEvent", event)  # type: ignore[attr-defined]
    assert view(page).is_displayed()
    arm, what = part(page, "said").text.split(" over host")[0], part(page, "title").text
    assert shown is not None and shown.startswith(arm)
    operation, transport, size = what.split(", ")[:3]
    assert f"{operation}, {transport}, {size}" in shown


def test_a_click_beside_all_marks_opens_nothing(page: WebDriver) -> None:
    drawing = page.find_element(By.CSS_SELECTOR, "svg.asks")
    page.execute_script(
        "const b = arguments[0].getBoundingClientRect(), at = {clientX: b.left, clientY: b.top};"
        "arguments[0].dispatchEvent(new MouseEvent('click', at))",
        drawing,
    )
    assert not view(page).is_displayed()


def test_a_filter_leaves_the_rows_that_fit_and_says_how_many(page: WebDriver) -> None:
    group = page.find_element(By.CSS_SELECTOR, '[aria-label="Rows of Cost of a container"]')
    choices = {
        label.text.split("\n")[0].strip(): Select(label.find_element(By.TAG_NAME, "select"))
        for label in group.find_elements(By.TAG_NAME, "label")
    }
    assert {"arm", "MPI", "operation", "transport", "message per rank"} <= set(choices)
    status = group.find_element(By.CSS_SELECTOR, '[role="status"]')
    assert status.text == "144 rows"
    choices["MPI"].select_by_visible_text("MPICH")
    choices["operation"].select_by_visible_text("Gather")
    seen = [
        row for row in page.find_elements(By.CSS_SELECTOR, "tr[data-cell]") if row.is_displayed()
    ]
    assert status.text == f"{len(seen)} of 144 rows" == "24 of 144 rows"
    assert all("MPICH" in row.text and "Gather" in row.text for row in seen)
    seen[-1].find_element(By.TAG_NAME, "button").click()
    title = part(page, "title").text
    press(page, Keys.ARROW_LEFT)  # to the neighbour that fits
    assert "Gather" in part(page, "title").text and "MPICH" in part(page, "title").text
    assert part(page, "title").text != title
    press(page, Keys.ESCAPE)
    choices["MPI"].select_by_visible_text("all")
    choices["operation"].select_by_visible_text("all")
    assert status.text == "144 rows"


def test_heads_stay_in_sight_while_a_table_scrolls(page: WebDriver) -> None:
    table = buttons(page)[0].find_element(By.XPATH, "ancestor::div[@role='region']")
    page.execute_script("arguments[0].scrollTop = 900", table)
    head = table.find_element(By.TAG_NAME, "thead").find_element(By.TAG_NAME, "th")
    assert abs(head.rect["y"] - table.rect["y"]) < 3
    assert page.execute_script("return arguments[0].scrollTop", table) == 900


def test_commands_and_data_paths_can_be_read(page: WebDriver) -> None:
    section = page.find_element(By.ID, "repeat")
    details = section.find_element(By.TAG_NAME, "details")
    details.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    lines = [code.text for code in details.find_elements(By.TAG_NAME, "code")]
    assert len(lines) == 2 * 6
    assert all(line.endswith(("--mpi openmpi", "--mpi mpich")) for line in lines)
    rows = page.find_elements(By.CSS_SELECTOR, "#paths tbody tr")
    assert len(rows) == 2 * 6


def test_without_its_script_the_page_holds_everything_else(chromium: Any, arms_page: Path) -> None:
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        chromium.get(arms_page.as_uri())
        assert len(chromium.find_elements(By.CSS_SELECTOR, "tr[data-cell]")) == 144
        assert not chromium.find_elements(By.CSS_SELECTOR, "tr[data-cell] button")
        assert not chromium.find_element(By.CSS_SELECTOR, ".script").is_displayed()
        assert not chromium.find_element(By.ID, "view").is_displayed()
        assert len(chromium.find_elements(By.CSS_SELECTOR, "figure svg")) >= 4
    finally:
        chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
