"""The window of a browser in tests: how wide it is, and which colours its user prefers."""

from typing import Any


def resize(browser: Any, width: int) -> None:
    """Give the page so many pixels."""
    shape = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)


def prefer(browser: Any, scheme: str) -> None:
    """Make its user prefer "light" or "dark"."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
