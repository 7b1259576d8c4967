"""What a task answers to mistakes, to signals and to a reader that closes the pipe."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

TASK = """
import signal, os
from invoke.context import Context
from invoke.exceptions import Exit
from experiments.model.errors import ExperimentsError
from commands.exits import reports_errors

@reports_errors
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
    done = run('raise ExperimentsError("no such thing; name another")')
    assert (done.returncode, done.stderr) == (1, "task: no such thing; name another\n")


def test_a_message_holds_no_control_character() -> None:
    done = run(r'raise ExperimentsError("a\x1b]0;owned\x07b")')
    assert done.stderr == "task: a\\x1b]0;owned\\x07b\n"


def test_an_interruption_is_130_whichever_signal_brought_it() -> None:
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        done = run(f"os.kill(os.getpid(), signal.{name}); signal.pause()")
        assert (done.returncode, done.stderr) == (130, "task: interrupted\n")


def test_a_clean_up_that_takes_long_is_not_silent() -> None:
    body = """try:
        os.kill(os.getpid(), signal.SIGINT); signal.pause()
    finally:
        __import__("time").sleep(0.6)"""
    done = run(body)
    assert done.stderr == "stopping what was started ...\ntask: interrupted\n"


def test_a_full_disk_says_what_is_kept() -> None:
    done = run('raise OSError(28, "No space left on device", "out/x")')
    assert done.returncode == 1
    assert "No space left on device (out/x); what finished is kept" in done.stderr


def test_without_results_a_full_disk_asks_for_no_out() -> None:
    done = run('raise OSError(28, "No space left on device", "/tmp")', flags="yes=False")
    output = "task: No space left on device (/tmp); fix the cause and run the command again\n"
    assert (done.returncode, done.stderr) == (1, output)


def test_a_reader_that_has_read_enough_is_no_mistake() -> None:
    done = run('print("line\\n" * 1_000_000)', "| head -n 1")
    assert done.returncode == 141
    assert done.stdout == "line\n"
    assert done.stderr.strip() == ""


@pytest.mark.parametrize("words", ["--list", "run --help"])
def test_a_reader_may_read_the_first_line_of_what_invoke_itself_prints(words: str) -> None:
    line = f'"$0" -m invoke {words} | true; exit ${{PIPESTATUS[0]}}'
    command = ["bash", "-c", line, sys.executable]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_task_is_never_ended_by_a_closed_socket() -> None:
    done = run("print(signal.getsignal(signal.SIGPIPE).name)", "--help")
    assert done.stdout == "SIG_IGN\n"


def test_a_defect_keeps_its_traceback() -> None:
    assert "ZeroDivisionError" in run("1 / 0").stderr
