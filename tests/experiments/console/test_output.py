"""Tables and lines as text, and how wide they are on standard output."""

import pytest
from rich.table import Column, Table
from rich.text import Text

from experiments.console.output import print_text, printed, to_stdout
from experiments.console.progress_bar import Display
from experiments.console.stages import Stages

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
