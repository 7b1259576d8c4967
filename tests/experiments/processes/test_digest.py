"""A hash changes with names, contents and words."""

from pathlib import Path

from experiments.processes.digest import digest, of_python


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


def test_code_of_another_text_or_another_name_has_another_hash(tmp_path: Path) -> None:
    source = tmp_path / "a.py"
    source.write_text("x = 1\n")
    before = of_python(tmp_path)
    (tmp_path / "a.pyc").write_text("no source")
    assert before == of_python(tmp_path)
    source.write_text("x = 2\n")
    edited = of_python(tmp_path)
    source.rename(tmp_path / "b.py")
    assert len({before, edited, of_python(tmp_path)}) == 3
