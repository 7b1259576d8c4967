"""What a task answers to mistakes, to signals and to a reader that closes the pipe."""

import subprocess
import sys
from pathlib import Path

import pytest
from invoke.context import Context
from invoke.exceptions import Exit

from commands.exits import reports_errors
from experiments.model.errors import ExperimentsError
from experiments.processes.executables import captured

ROOT = Path(__file__).parents[2]
FULL = "No space left on device"

TASK = """
import signal, os
from invoke.context import Context
from invoke.exceptions import Exit
from commands.exits import reports_errors

@reports_errors
def task(context):
    {body}

try:
    task(Context())
except Exit as ended:
    print(ended.message or "", file=__import__("sys").stderr)
    raise SystemExit(ended.code)
"""


def run(body: str, pipe: str = "") -> subprocess.CompletedProcess[str]:
    line = f'"$0" -c "$1" {pipe}; exit ${{PIPESTATUS[0]}}'
    return captured(["bash", "-c", line, sys.executable, TASK.format(body=body)])


def ended(error: Exception, has_results: bool = True) -> tuple[str | None, int]:
    """The message and the exit code of a task of this process that raises an error."""

    def measure(context: Context, out: str = "") -> None:
        raise error

    def build(context: Context, yes: bool = False) -> None:
        raise error

    with pytest.raises(Exit) as caught:
        reports_errors(measure if has_results else build)(Context())
    return caught.value.message, caught.value.code


@pytest.mark.usefixtures("handlers")
def test_a_users_mistake_is_one_message_without_control_characters_and_exit_code_1() -> None:
    for text, shown in (("no such thing", "no such thing"), ("a\x1b]0;b\x07", r"a\x1b]0;b\x07")):
        assert ended(ExperimentsError(text)) == (f"measure: {shown}", 1)


@pytest.mark.usefixtures("handlers")
def test_a_full_disk_says_what_is_kept_and_asks_for_no_out_without_results() -> None:
    message, code = ended(OSError(28, FULL, "out/x"))
    assert code == 1
    assert message and f"{FULL} (out/x); what finished is kept" in message
    again = f"build: {FULL} (/tmp); fix the cause and run the command again"
    assert ended(OSError(28, FULL, "/tmp"), has_results=False) == (again, 1)


@pytest.mark.usefixtures("handlers")
def test_a_defect_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        ended(ZeroDivisionError())


def test_an_interruption_is_130_whichever_signal_brought_it() -> None:
    for name in ("SIGTERM", "SIGHUP"):
        done = run(f"os.kill(os.getpid(), signal.{name}); signal.pause()")
        assert (done.returncode, done.stderr) == (130, "task: interrupted\n"), name


def test_a_clean_up_that_takes_long_is_not_silent() -> None:
    body = """try:
        os.kill(os.getpid(), signal.SIGINT); signal.pause()
    finally:
        __import__("time").sleep(0.6)"""
    done = run(body)
    assert done.returncode == 130
    assert done.stderr == "stopping what was started ...\ntask: interrupted\n"


def test_a_reader_that_has_read_enough_is_no_mistake() -> None:
    done = run('print("line\\n" * 1_000_000)', "| head -n 1")
    assert done.returncode == 141
    assert done.stdout == "line\n"
    assert done.stderr.strip() == ""


@pytest.mark.parametrize("words", ["--list", "run --help"])
def test_a_reader_may_read_the_first_line_of_what_invoke_itself_prints(words: str) -> None:
    line = f'"$0" -m invoke {words} | true; exit ${{PIPESTATUS[0]}}'
    done = captured(["bash", "-c", line, sys.executable], cwd=ROOT)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_task_is_never_ended_by_a_closed_socket() -> None:
    done = run("print(signal.getsignal(signal.SIGPIPE).name)", "--help")
    assert done.stdout == "SIG_IGN\n"
