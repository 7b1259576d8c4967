"""What is drawn of the campaigns of tests/campaigns.py, a bench, and a browser to read pages."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.remote.webdriver import WebDriver

from experiments.model.launch import FORMAT
from experiments.results import store
from experiments.schedule.blocks import schedule
from plots.draw import draw
from plots.html.report import report
from tests.benches import ask
from tests.sharing import MadeOnce


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
def arms_page(arms_folder: Path, made_once: MadeOnce) -> str:
    """Where the page of that campaign is."""
    folder = made_once("arms-page", lambda folder: report(arms_folder, folder))
    return (folder / "report.html").as_uri()


@pytest.fixture(scope="session")
def bench_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bench's folder with one launch, as a run leaves it."""
    asked = ask(2, operations="Bcast", sizes="1KiB,64KiB", peers="openmpi")
    launch = schedule(asked, 1)[0].launches[0]
    out = tmp_path_factory.mktemp("results") / "bench"
    header = {"name": "bench", "experiment": asked.to_dict(), "seed": 1, "machine": {}}
    store.create(out, header | {"schedule": [{"block": 0, "launches": [launch.name]}]})
    rng = np.random.default_rng(1)
    cells, samples = [], {}
    for number, cell in enumerate(launch.plan):
        key = f"c{number}"
        cells.append(
            asdict(cell) | {"samples": key, "warmup": 2, "group": 1, "turn": 2, "emulated": False}
        )
        samples[key] = rng.lognormal(-12, 0.1, (20, 2))
    with store.incoming(out, launch.name) as place:
        result = {"format": FORMAT, "launch": launch.to_dict(), "cells": cells}
        result |= {"environment": {"versions": {}}, "ranks": []}
        (place / "result.json").write_text(json.dumps(result))
        np.savez(place / "samples.npz", **samples)
        store.accept(out, launch.name, place)
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
