"""The folders of the checkout and of what is built. Knows no file in particular."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
OTHER_BUILDS = BUILD / "against"
"""Copies of other builds of the library, by a hash of their files."""
