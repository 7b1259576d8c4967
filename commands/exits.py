"""How a task ends: exit codes and the one message of a mistake or an interruption.

Knows invoke; knows no task.
"""

import errno
import functools
import inspect
import os
import signal
import sys
from collections.abc import Callable
from threading import Timer
from typing import Any

from invoke.context import Context
from invoke.exceptions import Exit, ParseError
from invoke.tasks import task

from experiments.console import print_text, printable
from experiments.model.errors import ExperimentsError
from hbmcomm import HbmcommError

PATIENCE = 0.3  # seconds in which most commands end
MISTAKE, INTERRUPTED, CLOSED_PIPE = 1, 130, 141


if {"--help", "--list"} & set(sys.argv):  # printed by invoke: no traceback after `| head`
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def _with_advice(error: ParseError) -> str:
    """invoke's message for words that it cannot parse, and the one thing to do next."""
    task = getattr(error.context, "name", None)
    return f"{error.args[0]} See ./inv {f'{task} --help' if task else '--list'}"


ParseError.__str__ = _with_advice  # type: ignore[assignment, method-assign]


def command(**options: Any) -> Callable[[Callable[..., None]], Any]:
    """Decorate a task, which then reports its errors; `options` are those of invoke's task()."""
    return lambda body: task(reports_errors(body), **options)


def reports_errors(body: Callable[..., None]) -> Callable[..., None]:
    """Decorate a task: an error that a user can cause or mend ends in a message, no traceback."""

    advice = "fix the cause and run the command again"
    if "out" in inspect.signature(body).parameters:
        advice = (
            "what finished is kept: make room or name another --out, then complete a campaign "
            "with --resume"
        )

    @functools.wraps(body)
    def wrapper(context: Context, *args: Any, **flags: Any) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _interrupt)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # a closed pipe or socket is an error below
        try:
            body(context, *args, **flags)
        except (ExperimentsError, HbmcommError) as error:
            raise Exit(printable(f"{body.__name__}: {error}"), code=MISTAKE) from None
        except KeyboardInterrupt:
            raise Exit(f"{body.__name__}: interrupted", code=INTERRUPTED) from None
        except BrokenPipeError:  # after `| head`: the flush at exit must not fail as well
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise Exit(code=CLOSED_PIPE) from None
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
                raise
            name = error.filename2 or error.filename  # of a copy, that it is written to
            path = f" ({name})" if name else ""
            message = f"{body.__name__}: {error.strerror}{path}; {advice}"
            raise Exit(printable(message), code=MISTAKE) from None

    return wrapper


def _interrupt(number: int, frame: object) -> None:
    """Ctrl-C, a batch system's limit or a closed terminal: clean up once, undisturbed.

    A clean-up that takes long says what it does.
    """
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    waiting = Timer(PATIENCE, lambda: print_text("stopping what was started ...", file=sys.stderr))
    waiting.daemon = True
    waiting.start()
    raise KeyboardInterrupt
