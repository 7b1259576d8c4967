"""Each wrong archive ends `report` in one message that names it, its file and its field.

test_typed.py says how draws are repeated.
"""

import lzma
import random
import re
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from invoke.collection import Collection
from invoke.program import Program

import tasks
from experiments.analysis.reading import load
from experiments.model.errors import ExperimentsError
from experiments.results import unarchive
from experiments.results.store import ResultsError
from tests.experiments.results import test_typed as folders
from tests.experiments.results.test_typed import ESCAPE, RARELY, SECONDS, check_message, draw_for
from tests.experiments.results.wrong_archives import Wrong, right_and_wrong

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)


@pytest.fixture(scope="module")
def archives() -> tuple[bytes, list[Wrong]]:
    return right_and_wrong()


@pytest.fixture
def as_a_command() -> Iterator[None]:
    """What a command does to signals of its process is undone."""
    handlers = [signal.getsignal(number) for number in SIGNALS]
    yield
    for number, handler in zip(SIGNALS, handlers, strict=True):
        signal.signal(number, handler)


def test_one_is_right_and_many_wrong(archives: tuple[bytes, list[Wrong]], tmp_path: Path) -> None:
    path = tmp_path / "right.tar.xz"
    path.write_bytes(archives[0])
    with unarchive.opened(path) as folder:
        assert len(load(folder).launches) == 1
    assert len({(wrong.kind, wrong.name) for wrong in archives[1]}) == len(archives[1]) > 140
    assert len({wrong.kind for wrong in archives[1]}) == 7


def reported(path: Path, out: Path) -> object:
    """The exit code of `./inv report`."""
    program = Program(binary_names=["invoke"], namespace=Collection.from_module(tasks))
    with pytest.raises(SystemExit) as ended:
        program.run(["invoke", "report", "--results", str(path), "--out", str(out)])
    return ended.value.code


@pytest.mark.usefixtures("as_a_command")
def test_a_wrong_folder_is_one_message(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with folders.campaign() as folder:
        file = folder / folders.JSON
        folders.change_json(file, ("cells", 0, "operation"), f"bcast{ESCAPE}")
        assert reported(folder, tmp_path) == 1
    output, error = capfd.readouterr()
    message = rf"report: {file} cannot be read \(cells\[0\]\.operation holds .*\n"
    assert output == "" and re.fullmatch(message, error)
    assert list(tmp_path.iterdir()) == []


def test_an_archive_that_cannot_be_unpacked_is_refused(
    archives: tuple[bytes, list[Wrong]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that are wrong as a whole; nothing temporary is left."""
    temporary, path = tmp_path / "temporary", tmp_path / "wrong.tar.xz"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    for wrong in archives[1]:
        if wrong.kind in ("entry", "file", "compression") and wrong.name != "bomb":
            path.write_bytes(wrong.content())
            with pytest.raises(ResultsError) as error, unarchive.opened(path):
                pytest.fail(f"{wrong.name!r} was opened")
            message = re.escape(str(path)) + wrong.says
            assert re.fullmatch(message, str(error.value)), (wrong.name, error.value)
            assert sorted(tmp_path.rglob("*")) == [temporary, path], wrong.name


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.rare)])
@pytest.mark.usefixtures("as_a_command")
def test_a_report_of_a_wrong_archive_is_one_message_and_nothing_else(
    archives: tuple[bytes, list[Wrong]],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    whole: bool,
) -> None:
    """CI draws two of each kind."""
    scratch, out, path = tmp_path / "scratch", tmp_path / "out", tmp_path / "wrong.tar.xz"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.chdir(tmp_path)
    faults = []
    for wrong in archives[1] if whole else drawn(archives[1]):
        path.write_bytes(wrong.content())
        code = reported(path, out)
        output, error = capfd.readouterr()
        message = rf"report: {re.escape(str(path))}{wrong.says}\n"
        if (
            (code, output) != (1, "")
            or re.fullmatch(message, error) is None
            or not error[:-1].isprintable()
            or len(error) > 900
            or sorted(tmp_path.rglob("*")) != [scratch, path]
        ):
            faults.append((wrong.kind, wrong.name, code, output, error))
    assert faults == []


def drawn(archives: list[Wrong]) -> list[Wrong]:
    """Two of each kind at random."""
    shuffled = random.sample(archives, len(archives))
    kinds = {wrong.kind for wrong in archives}
    return [wrong for kind in kinds for wrong in [w for w in shuffled if w.kind == kind][:2]]


def hostile_archive(right: bytes, folder: Path, data: st.DataObject) -> None:
    """An archive with some bytes changed, moved or cut is right, or refused in one message."""
    draw: Any = data.draw
    content = bytearray(lzma.decompress(right))
    for _ in range(draw(st.integers(1, 4))):
        block = 512 * draw(st.integers(0, len(content) // 512 - 1))
        at = block + draw(st.integers(0, 511))
        match draw(st.sampled_from(["change", "change", "cut", "double", "zeros", "text"])):
            case "change":
                content[at] ^= draw(st.integers(1, 255))
            case "cut":
                del content[at : at + draw(st.integers(1, 2000))]
            case "double":
                content[block:block] = content[block : block + 1024]
            case "zeros":
                content[block : block + 512] = bytes(512)
            case _:
                text = draw(st.sampled_from(["../../x", "/", "9" * 12, "-1", "path=x", ESCAPE]))
                content[at : at + len(text)] = text.encode()
        if len(content) < 512:
            break
    path = folder / "hostile.tar.xz"
    path.write_bytes(lzma.compress(bytes(content), preset=0))
    try:
        with unarchive.opened(path) as unpacked:
            load(unpacked)
    except ExperimentsError as error:
        check_message(str(error), path)
    assert sorted(folder.rglob("*")) == [path]


@pytest.mark.parametrize("seconds", [SECONDS / 2, RARELY])
def test_hostile_archives_are_right_or_refused(
    archives: tuple[bytes, list[Wrong]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def one(data: st.DataObject) -> None:
        hostile_archive(archives[0], tmp_path, data)

    draw_for(seconds, one)
