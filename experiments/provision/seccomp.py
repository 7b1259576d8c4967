"""The seccomp filter of the profile tuned: the engine's default rules and a few calls more.

Docker's interface takes the filter's text, Podman's takes the path of a file.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from experiments.environments.profiles import SECCOMP
from experiments.model.checkout import ROOT
from experiments.processes.files import whole_file

RULES = ROOT / "docker" / "seccomp"
FILE = ROOT / SECCOMP
OPTION = f"seccomp={SECCOMP}"


def additions() -> dict[str, str]:
    """System calls that are allowed beside the engine's default, each with its user."""
    return dict(json.loads((RULES / "additions.json").read_text(encoding="utf-8")))


def text(without: Iterable[str] = ()) -> str:
    """The filter as JSON. A test takes one of the additions away again with `without`."""
    rules = json.loads((RULES / "default.json").read_text(encoding="utf-8"))
    calls = sorted(additions().keys() - set(without))
    rules["syscalls"].append({"names": calls, "action": "SCMP_ACT_ALLOW"})
    return json.dumps(rules, indent=1) + "\n"


def ensure(file: Path = FILE) -> Path:
    """The filter as a file, up to date; written whole or not at all."""
    wanted = text()
    if not file.is_file() or file.read_text(encoding="utf-8") != wanted:
        file.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(file) as incoming:
            incoming.write(wanted.encode())
    return file


def resolved(engine: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """A container's options as an engine's interface takes them: the filter for its name.

    Args:
        engine: "docker" or "podman".
    """
    wanted = list(options.get("security_opt", []))
    if OPTION not in wanted:
        return dict(options)
    file = ensure()  # Docker's command line reads the file
    wanted[wanted.index(OPTION)] = f"seccomp={text() if engine == 'docker' else file}"
    return {**options, "security_opt": wanted}
