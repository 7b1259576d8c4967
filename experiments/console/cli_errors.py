"""How every task answers: a mistake with one message, an interruption once, flags by name.

Knows invoke; knows no task.
"""

import contextlib
import errno
import functools
import inspect
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from invoke.context import Context
from invoke.exceptions import Exit

from experiments.model.errors import ExperimentsError
from hbmcomm import HbmcommError


def told(body: Callable[..., None]) -> Callable[..., None]:
    """Answer what a user can cause or mend without a traceback."""

    advice = "see to it, then do it again"
    if "out" in inspect.signature(body).parameters:
        advice = (
            "what finished is kept: make room or name another --out, then complete a campaign "
            "with --resume"
        )

    @functools.wraps(body)
    def wrapper(context: Context, *args: Any, **flags: Any) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _stop)
        try:
            body(context, *args, **flags)
        except (ExperimentsError, HbmcommError) as error:
            raise Exit(f"{body.__name__}: {error}", code=1) from None
        except KeyboardInterrupt:
            raise Exit(f"{body.__name__}: interrupted", code=130) from None
        except BrokenPipeError:  # `| head` has read enough; nothing is to be flushed at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise Exit(code=141) from None
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
                raise
            place = f" ({error.filename})" if error.filename else ""
            raise Exit(f"{body.__name__}: {error.strerror}{place}; {advice}", code=1) from None

    return wrapper


def _stop(number: int, frame: object) -> None:
    """Ctrl-C, a batch system's limit or a closed terminal: end once, and finish ending."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def positional(task: str, *names: str) -> list[str]:
    """The arguments that a task takes without a flag: where its help is asked for, those given.

    invoke would take `--help` for the value of the first argument that is missing.
    """
    words = sys.argv[sys.argv.index(task) + 1 :] if task in sys.argv else []
    if not {"-h", "--help"} & set(words):
        return list(names)
    return list(names[: sum(not word.startswith("-") for word in words)])


def first(task: str, name: str) -> list[str]:
    """The argument that a task takes as its first word where that is a path: `report ARCHIVE`.

    Else it is what its flag says, and the word another task: invoke would ask for a positional
    argument that is missing.
    """
    words = sys.argv[sys.argv.index(task) + 1 :] if task in sys.argv else []
    word = "".join(words[:1])
    path = not word.startswith("-") and ("/" in word or "." in word or Path(word).is_dir())
    return [name] if word and path else []


def whole(flag: str, text: str, least: int) -> int | None:
    """A flag's whole number; None where it was not given."""
    if not text:
        return None
    if not text.isdigit() or int(text) < least:
        raise ExperimentsError(f"--{flag} {text!r} must be a whole number, {least} or more")
    return int(text)


def choose(flag: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuse a flag's value that is not among the choices."""
    if value not in choices:
        raise ExperimentsError(f"--{flag} {value!r} is not one of {', '.join(choices)}")


def writable(flag: str, folder: Path) -> Path:
    """The folder, refused before any work is done for it where it cannot be made or written.

    What is made to find out is removed again.
    """
    made: list[Path] = []
    try:
        made += [each for each in (folder, *folder.parents) if not each.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise ExperimentsError(
            f"cannot write into {folder} ({error.strerror}); name another folder with --{flag}"
        ) from None
    finally:
        for each in made:
            with contextlib.suppress(OSError):
                each.rmdir()


def writable_file(flag: str, path: Path) -> Path:
    """As writable(), of a file: one that is there is replaced."""
    if path.is_dir():
        raise ExperimentsError(f"{path} is a folder; name a file with --{flag}")
    writable(flag, path.parent)
    return path
