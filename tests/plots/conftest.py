"""What is drawn of the campaigns of tests/campaigns.py, a bench, and a browser to read pages."""

import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.remote.webdriver import WebDriver

from experiments.schedule.blocks import schedule
from plots.draw import draw
from plots.html.report import report
from tests.benches import ask
from tests.sharing import MadeOnce
from tests.stored_launches import begin, finish


@pytest.fixture(scope="session")
def drawn(campaign_folder: Path, made_once: MadeOnce) -> list[Path]:
    """Every file of that campaign: each figure in each format, each table."""
    folder = made_once("drawn", lambda folder: draw(campaign_folder, folder / "of-quick"))
    return sorted((folder / "of-quick").iterdir())


@pytest.fixture(scope="session")
def quick_page(campaign_folder: Path, made_once: MadeOnce) -> Path:
    """The page of that campaign."""
    return made_once("page", lambda folder: report(campaign_folder, folder)) / "report.html"


@pytest.fixture(scope="session")
def arms_page(arms_folder: Path, made_once: MadeOnce) -> Path:
    """The page of the campaign with several arms and MPIs."""
    return made_once("arms-page", lambda folder: report(arms_folder, folder)) / "report.html"


@pytest.fixture(scope="session")
def bench_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bench's folder with one launch, as a run leaves it."""
    asked = ask(2, operations="Bcast", sizes="1KiB,64KiB", peers="openmpi")
    launch = schedule(asked, 1)[0].launches[0]
    out = tmp_path_factory.mktemp("results") / "bench"
    begin(out, asked, machine={}, schedule=[{"block": 0, "launches": [launch.name]}])
    rng = np.random.default_rng(1)
    samples = {f"c{number}": rng.lognormal(-12, 0.1, (20, 2)) for number in range(len(launch.plan))}
    measured = {"warmup": 2, "group": 1, "turn": 2, "emulated": False}
    cells = [
        asdict(cell) | {"samples": key} | measured
        for key, cell in zip(samples, launch.plan, strict=True)
    ]
    finish(out, launch, cells, samples)
    return out


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    """A real headless Chromium; the test is skipped where there is none."""
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not binary or not driver:
        pytest.skip("no Chromium here; install it: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--force-prefers-reduced-motion",  # a click may miss what still scrolls
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={tmp_path_factory.mktemp('chromium')}",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(driver))
    yield browser
    browser.quit()
