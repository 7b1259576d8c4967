"""A hash changes with names, contents and words."""

from pathlib import Path

from experiments.processes.digest import digest


def test_names_contents_and_words_all_count(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("some")
    (tmp_path / "b").write_text("other")
    every = [
        digest(b"", []),
        digest(b"words", []),
        digest(b"words", [("a", tmp_path / "a")]),
        digest(b"words", [("b", tmp_path / "a")]),
        digest(b"words", [("a", tmp_path / "b")]),
    ]
    assert len(set(every)) == len(every)
    assert every[2] == digest(b"words\0a\0some", [])
