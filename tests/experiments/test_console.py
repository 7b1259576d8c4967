"""What the user sees of a command: text, the stages of its work, a bar while launches run."""

import io

import pytest
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from experiments import console
from experiments.console import Display, Stages, print_text, printed, to_stdout

LONG = "x " * 40


def table() -> Table:
    rich_table = Table(box=None, pad_edge=False)
    rich_table.add_column("name")
    rich_table.add_column("value", overflow="fold")
    rich_table.add_row("kind", "hbw")
    return rich_table


def test_no_line_ends_with_spaces() -> None:
    assert printed(table(), Text(), width=40) == "name  value\nkind  hbw\n\n"


def test_a_str_stays_on_one_line_and_is_no_markup() -> None:
    assert printed(f"[bold] {LONG}", width=20) == f"[bold] {LONG.rstrip()}\n"
    assert len(printed(Text(LONG), width=20).splitlines()) == 4


def test_a_terminal_shows_styles() -> None:
    assert printed(Text("ok", "green"), terminal=False) == "ok\n"
    assert "\x1b[" in printed(Text("ok", "green"), terminal=True)


def test_output_that_is_no_terminal_has_the_width_that_was_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    to_stdout(Text(LONG), 20)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 20


def test_no_control_character_reaches_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    bad, shown = "a\x1b]0;owned\udcff\u202eb", r"a\x1b]0;owned\udcff\u202eb"
    column = Table(Column(bad), box=None)
    column.add_row(Text(bad))
    assert printed(bad, Text(bad), width=80) == f"{shown}\n{shown}\n"
    to_stdout(column, 80)
    print_text(bad, bad)
    Stages().say(bad)
    display = Display(1, 0)
    display.begin(bad)
    display.end()
    display.say(bad)
    written = "".join(capsys.readouterr())
    assert written.count(shown) == 7
    assert written.replace("\n", "").isprintable()


def read(stages: Stages) -> str:
    text = stages.console.file
    assert isinstance(text, io.StringIO)
    return text.getvalue()


@pytest.fixture
def stages() -> Stages:
    return Stages(Console(file=io.StringIO(), width=40))


def test_each_stage_is_told_when_it_ends_and_all_in_the_summary(stages: Stages) -> None:
    with stages.stage("image"):
        stages.say("building")
    with stages.stage("figures"):
        pass
    lines = read(stages).splitlines()
    assert lines[0] == "building"
    assert [line.partition(":")[0] for line in lines[1:]] == ["image", "figures"]
    assert stages.summary().startswith("stages: image 0.0 s, figures 0.0 s;")


def test_a_stage_that_fails_is_not_told_as_done(stages: Stages) -> None:
    with pytest.raises(OSError, match="full"), stages.stage("image"):
        raise OSError("full")
    assert read(stages) == ""


def test_a_line_is_said_as_it_is_whatever_its_length_or_brackets(stages: Stages) -> None:
    line = "[bold]/a/long/path[/bold] " + "x" * 100
    stages.say(line)
    assert read(stages) == line + "\n"


def test_a_terminal_shows_that_a_stage_is_alive() -> None:
    stages = Stages(Console(file=io.StringIO(), force_terminal=True, width=80))
    with stages.stage("image"):
        pass
    assert "image 0:00:00" in read(stages).replace("\x1b[0m", "").replace("\x1b[33m", "")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, for a test to change."""
    now = [1000.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    return now


def run(clock: list[float], seconds: list[float], total: int, done: int = 0) -> list[str]:
    shown = io.StringIO()
    with Display(total, done, Console(file=shown, width=100)) as display:
        for number, duration in enumerate(seconds):
            display.begin(f"launch-{number}")
            clock[0] += duration
            display.end()
        display.say("a [line] of its own")
    return shown.getvalue().splitlines()


def test_each_launch_is_told_with_the_time_that_is_left(clock: list[float]) -> None:
    assert run(clock, [30.0, 90.0, 60.0], total=4) == [
        "[1/4] launch-0: 30.0 s, about 2 min left",
        "[2/4] launch-1: 90.0 s, about 2 min left",
        "[3/4] launch-2: 60.0 s",
        "a [line] of its own",
    ]


def test_launches_of_an_earlier_run_do_not_count_for_the_estimate(clock: list[float]) -> None:
    assert run(clock, [60.0], total=10, done=5)[0] == "[6/10] launch-0: 60.0 s, about 4 min left"


def test_a_long_line_is_not_wrapped() -> None:
    shown = io.StringIO()
    with Display(1, 0, Console(file=shown, width=20)) as display:
        display.begin("0001-docker-tuned-per-rank (mpich, 4 ranks, spread)")
        display.end()
    assert shown.getvalue().count("\n") == 1
