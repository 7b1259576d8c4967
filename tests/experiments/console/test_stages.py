"""What the user reads while stages run."""

import io

import pytest
from rich.console import Console

from experiments.console.stages import Stages


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
