"""Names of the machine that measured, and the words that an archive has in their place.

A results folder keeps its machine's names in a hidden file: the archive may be made elsewhere.
"""

import contextlib
import getpass
import itertools
import json
import platform
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from experiments.model.checkout import ROOT
from experiments.model.environment import PLACES, RUNTIMES

FILE = ".names.json"
"""In a results folder: {word: names that it replaces}. No archive has this file."""
GENERIC = {
    *("", "root", "localhost", "debian", "ubuntu", *PLACES, *RUNTIMES),
    *("/", "/usr", "/usr/local", "/tmp", "/var/tmp", "/root"),
}
"""Users, hosts and folders that are the same on many machines, and words of this program."""
PROTECTED = {
    *("experiment", "schedule", "base", "launch", "company", "cells"),
    *("images", "containers", "mpis", "driver", "versions"),
}
"""Parts of stored JSON in which a word that is also a user's or a host's name is none."""
COMMANDS = ("command", "commands")
_OTHER_FOLDER = re.compile(
    r"(?<![\w./+-])/(?!(?:bin|boot|dev|etc|lib|lib64|proc|run|sbin|sys|usr|var|launch)(?![\w-])"
    r"|opt/hbmcomm(?![\w-])|tmp(?![\w/-]))\w[^\s:,'\"=]*"
)
"""In a command: a folder that is neither the system's nor the image's."""
_EMULATED_HOST = re.compile(r"n\d+")

Names = Mapping[str, Iterable[str]]


def here(results: Path) -> dict[str, list[str]]:
    """{word: names} of this machine, for what is measured into a results folder."""
    folders = {
        "RESULTS": [results],
        "CHECKOUT": [ROOT],
        "PYTHON": [Path(sys.prefix), Path(sys.base_prefix)],
        "HOME": [Path("~").expanduser()],
        "TEMP": [Path(tempfile.gettempdir())],
    }
    names = {
        word: [spelling for path in paths for spelling in _spellings(path)]
        for word, paths in folders.items()
    }
    host = platform.node()
    return names | {"USER": [_user()], "HOST": [host, host.partition(".")[0]]}


def _spellings(folder: Path) -> list[str]:
    return list(dict.fromkeys((str(folder.absolute()), str(folder.resolve()))))


def _user() -> str:
    """The name of this process's user; "" where it has none."""
    with contextlib.suppress(KeyError, OSError):
        return getpass.getuser()
    return ""


def before(header: Mapping[str, Any], results: Path) -> dict[str, list[str]]:
    """The names for a campaign of before FILE: those of this machine, and of its command."""
    words = header.get("command", ())
    after = dict(itertools.pairwise(words)) if isinstance(words, list) else {}
    names = here(results)
    return names | {"CHECKOUT": [*names["CHECKOUT"], str(after.get("--search-root", ""))]}


def of_nodes(launches: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """{HOST1: name} and so on of the nodes that launches ran on, but for emulated hosts."""
    hosts = (host for launch in launches for host in _hosts(launch))
    nodes = sorted({str(host["name"]) for host in hosts})
    real = [name for name in nodes if not _EMULATED_HOST.fullmatch(name)]
    return {f"HOST{number}": [name] for number, name in enumerate(real, 1)}


def _hosts(launch: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    hosts: Iterable[Mapping[str, Any]] = launch.get("environment", {}).get("hosts", ())
    return hosts


class Replacing:
    """Writes text and JSON with words in place of names."""

    def __init__(self, names: Names) -> None:
        pairs = [(name, word) for word, every in names.items() for name in every]
        self._words = {name: word for name, word in reversed(pairs) if name not in GENERIC}
        longest_first = sorted(self._words, key=len, reverse=True)
        folders = [rf"{re.escape(name)}(?![\w-])" for name in longest_first if "/" in name]
        others = [re.escape(name) for name in longest_first if "/" not in name]
        people = [rf"(?<![A-Za-z0-9])(?:{'|'.join(others)})(?![A-Za-z0-9])"] if others else []
        self._folders = self._replacer("|".join(folders))
        self._all = self._replacer("|".join([*folders, *people]))

    def _replacer(self, pattern: str) -> Callable[[str], str]:
        if not pattern:
            return str
        return lambda text: re.sub(pattern, lambda match: self._words[match[0]], text)

    def content(self, name: str, content: bytes) -> bytes:
        """What a file of a results folder holds, with words; samples stay as they are."""
        if name.endswith(".npz"):
            return content
        if name.endswith(".json"):
            try:
                values = json.loads(content)
            except (ValueError, RecursionError):
                pass
            else:
                replaced = self.json(values)
                text = f"{json.dumps(replaced, indent=1, sort_keys=True)}\n"
                return content if replaced == values else text.encode()
        text = content.decode("utf-8", "surrogateescape")
        return self._all(text).encode("utf-8", "surrogateescape")

    def json(self, value: Any, key: str = "", protected: bool = False) -> Any:
        """A value of stored JSON; in PROTECTED parts of it only folders are replaced."""
        if isinstance(value, dict):
            return {
                self._folders(name): self.json(child, name, protected or name in PROTECTED)
                for name, child in value.items()
            }
        if isinstance(value, list):
            return [self.json(child, key, protected) for child in value]
        if not isinstance(value, str):
            return value
        text = (self._folders if protected else self._all)(value)
        return _OTHER_FOLDER.sub(_last_part, text) if key in COMMANDS else text


def _last_part(match: re.Match[str]) -> str:
    return f"FOLDER/{match[0].rstrip('/').rpartition('/')[2]}"
