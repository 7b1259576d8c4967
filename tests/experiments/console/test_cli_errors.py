"""What every task answers to mistakes, to a reader who has read enough, and to odd flags."""

import subprocess
import sys
from pathlib import Path

import pytest

from experiments.console.cli_errors import choose, first, whole, writable, writable_file
from experiments.model.errors import ExperimentsError

TASK = """
import signal, os
from invoke.context import Context
from invoke.exceptions import Exit
from experiments.model.errors import ExperimentsError
from experiments.console.cli_errors import told

@told
def task(context, {flags}):
    {body}

try:
    task(Context())
except Exit as ended:
    print(ended.message or "", file=__import__("sys").stderr)
    raise SystemExit(ended.code)
"""


def run(body: str, pipe: str = "", flags: str = "out=''") -> subprocess.CompletedProcess[str]:
    script = TASK.format(body=body, flags=flags)
    line = f'"$0" -c "$1" {pipe}; exit ${{PIPESTATUS[0]}}'
    return subprocess.run(
        ["bash", "-c", line, sys.executable, script], capture_output=True, text=True, check=False
    )


def test_a_users_mistake_is_one_message_and_exit_code_1() -> None:
    found = run('raise ExperimentsError("no such thing; name another")')
    assert (found.returncode, found.stderr) == (1, "task: no such thing; name another\n")


def test_an_interruption_is_130_whichever_signal_brought_it() -> None:
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        found = run(f"os.kill(os.getpid(), signal.{name}); signal.pause()")
        assert (found.returncode, found.stderr) == (130, "task: interrupted\n")


def test_a_full_disk_says_what_is_kept() -> None:
    found = run('raise OSError(28, "No space left on device", "out/x")')
    assert found.returncode == 1
    assert "No space left on device (out/x); what finished is kept" in found.stderr


def test_without_results_a_full_disk_asks_for_no_out() -> None:
    found = run('raise OSError(28, "No space left on device", "/tmp")', flags="yes=False")
    said = "task: No space left on device (/tmp); see to it, then do it again\n"
    assert (found.returncode, found.stderr) == (1, said)


def test_a_reader_that_has_read_enough_is_no_mistake() -> None:
    found = run('print("line\\n" * 1_000_000)', "| head -n 1")
    assert found.returncode == 141
    assert found.stdout == "line\n"
    assert found.stderr.strip() == ""


def test_a_defect_keeps_its_traceback() -> None:
    assert "ZeroDivisionError" in run("1 / 0").stderr


def test_flags_are_whole_numbers_or_choices() -> None:
    assert whole("blocks", "", 1) is None
    assert whole("blocks", "6", 1) == 6
    choose("format", "csv", ("csv", "osu"))
    with pytest.raises(ExperimentsError, match="--blocks '0' must be a whole number, 1 or more"):
        whole("blocks", "0", 1)
    with pytest.raises(ExperimentsError, match="--format 'x' is not one of csv, osu"):
        choose("format", "x", ("csv", "osu"))


def test_a_folder_that_can_be_written_is_not_made_yet(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "new" / "deep"):
        assert writable("out", folder) == folder
    assert writable_file("out", tmp_path / "new" / "a.csv") == tmp_path / "new" / "a.csv"
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_named_with_the_reason(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    assert writable_file("out", file) == file
    for folder, reason in ((file, "File exists"), (file / "below", "Not a directory")):
        with pytest.raises(ExperimentsError, match=rf"{folder} \({reason}\); .* with --figures"):
            writable("figures", folder)
    with pytest.raises(ExperimentsError, match=rf"{tmp_path} is a folder; name a file with --out"):
        writable_file("out", tmp_path)
    assert file.read_text() == "in the way"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("report", []),
        ("report --out x", []),
        ("report plot", []),
        ("plot report", []),
        ("report -h", []),
        ("report quick.tar.xz", ["results"]),
        ("report results/quick --out x", ["results"]),
        ("report .", ["results"]),
    ],
)
def test_the_first_word_of_a_task_is_its_campaign_where_it_is_a_path(
    words: str, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["invoke", *words.split()])
    assert first("report", "results") == found
