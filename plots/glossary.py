"""The words that pages and report use in a sense of their own: html/templates/glossary.toml."""

import tomllib
from pathlib import Path

WORDS = Path(__file__).parent / "html" / "templates" / "glossary.toml"


def words() -> dict[str, str]:
    """{word: meaning}, in the order in which they build on each other."""
    found: dict[str, str] = tomllib.loads(WORDS.read_text(encoding="utf-8"))
    return found
