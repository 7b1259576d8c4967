"""Where the checkout lies and where what is built goes. Knows no file in particular."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
