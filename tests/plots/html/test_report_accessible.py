"""Every accessibility rule that axe-core has, on the page in light and dark, narrow and wide.

The rules run as they are: WCAG 2 A and AA and the best practices. What axe-core cannot decide for
itself (`incomplete`) is no violation. A figure counts as the one image that its role says it is:
the thousands of strokes inside it are left out.
"""

from pathlib import Path
from typing import Any

import pytest
import selenium_axe_python
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from plots.html.report import report
from tests.campaigns import write_campaign
from tests.plots.html.window import prefer, resize
from tests.sharing import MadeOnce

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

AXE = Path(selenium_axe_python.__file__).parent / "axe-core" / "axe.min.js"
RUN = """
const done = arguments[arguments.length - 1];
const without = {exclude: [[".drawing > g"], [".drawing > defs"]]};
axe.run(without, {resultTypes: ["violations", "passes"]}).then(
  (found) => done({
    passed: found.passes.map((rule) => rule.id),
    violations: found.violations.map((rule) => ({
      rule: rule.id, help: rule.help,
      where: rule.nodes.slice(0, 3).map((node) => node.html.slice(0, 200)),
    })),
  }),
  (error) => done({passed: [], violations: [String(error)]}));
"""


@pytest.fixture(scope="module")
def address(made_once: MadeOnce) -> str:
    """A page with every part that there is, in tables of few rows: axe-core looks at each cell."""
    arms = {"profiles": "default,tuned", "layouts": "one,isolated", "mpis": "openmpi,mpich"}

    def make(folder: Path) -> None:
        write_campaign(folder / "rows", slim=True, sizes="1KiB", **arms)
        report(folder / "rows", folder)

    return (made_once("few-rows", make) / "report.html").as_uri()


@pytest.fixture
def page(chromium: Any, address: str) -> Any:
    """The page with axe-core beside it."""
    chromium.get(address)
    chromium.set_script_timeout(100)
    chromium.execute_script(AXE.read_text(encoding="utf-8"))
    return chromium


def dress(page: Any, width: int, scheme: str) -> None:
    resize(page, width)
    prefer(page, scheme)


@pytest.mark.parametrize(
    "opened",
    [
        pytest.param(False, id="closed", marks=pytest.mark.rare),
        pytest.param(True, id="with the samples open"),
    ],
)
@pytest.mark.parametrize(
    ("width", "scheme"), [pytest.param(1400, "light", marks=pytest.mark.rare), (400, "dark")]
)
def test_no_rule_is_broken(page: Any, width: int, scheme: str, opened: bool) -> None:
    dress(page, width, scheme)
    page.execute_script("document.querySelectorAll('details').forEach((each) => each.open = true)")
    if opened:
        page.find_element(By.CSS_SELECTOR, "tr[data-cell] button").send_keys(Keys.ENTER)
        assert page.find_element(By.ID, "view").is_displayed()
    try:
        audit = page.execute_async_script(RUN)
    finally:
        dress(page, 1400, "light")
    assert audit["violations"] == []
    assert {"color-contrast", "aria-allowed-attr"} <= set(audit["passed"])


def test_a_page_that_breaks_rules_is_caught(chromium: Any, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.html"
    wrong.write_text(
        "<!doctype html><title>wrong</title><main><img src='data:,'>"
        "<p style='color:#ccc;background:#fff'>pale</p></main><main></main>"
    )
    chromium.get(wrong.as_uri())
    chromium.execute_script(AXE.read_text(encoding="utf-8"))
    broken = {violation["rule"] for violation in chromium.execute_async_script(RUN)["violations"]}
    assert {"image-alt", "color-contrast", "html-has-lang", "landmark-no-duplicate-main"} <= broken
