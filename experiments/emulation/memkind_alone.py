"""memkind's own answers, without hbmcomm, for the CPUs that this process may run on.

A new process for every question, because memkind looks for memory once and keeps the answer.
`python -m experiments.emulation.memkind_alone` prints one JSON object, {kind: answer}.
"""

import ctypes
import json
import sys
from typing import Any

from experiments.emulation import numa_maps, question
from experiments.emulation.question import PAGE
from experiments.processes.executables import captured

LIBRARY = "libmemkind.so.0"
KINDS = (*question.KINDS, "highest_bandwidth_local")
MESSAGE_SIZE = 128  # MEMKIND_ERROR_MESSAGE_SIZE
DEADLINE = 120.0  # seconds; emulated machines are slow


def ask() -> dict[str, Any]:
    """{kind: answer} from a new process, which inherits the CPUs of this one."""
    argv = [sys.executable, "-P", "-m", __name__]
    done = captured(argv, timeout=DEADLINE)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:]
        return {
            kind: {"error": " ".join([f"ended with {done.returncode}", *last])} for kind in KINDS
        }
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


def answer(library: Any, kind: str) -> dict[str, Any]:
    """Whether memkind has a kind and, if so, the nodes of a touched page of it.

    Returns:
        {"nodes": [4], "policy": "bind:4"}, or {"error": memkind's message, "status": its code}.
    """
    handle = ctypes.c_void_p.in_dll(library, f"MEMKIND_{kind.upper()}")
    status = library.memkind_check_available(handle)
    if status:
        return {"error": _message(library, status), "status": status}
    address = library.memkind_malloc(handle, PAGE)
    if not address:
        return {"error": f"{PAGE} bytes refused"}
    ctypes.memset(address, 1, PAGE)
    mapping = numa_maps.containing(address, numa_maps.mappings())
    return {"nodes": sorted(mapping.pages), "policy": mapping.policy}


def main() -> None:
    """Print the answers for all kinds."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        answers = {kind: {"error": str(error)} for kind in KINDS}
    else:
        library.memkind_malloc.restype = ctypes.c_void_p
        library.memkind_malloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        answers = {kind: answer(library, kind) for kind in KINDS}
    sys.stdout.write(json.dumps(answers) + "\n")


def _message(library: Any, status: int) -> str:
    text = ctypes.create_string_buffer(MESSAGE_SIZE)
    library.memkind_error_message(status, text, ctypes.c_size_t(MESSAGE_SIZE))
    return f"{text.value.decode()} ({status})"


if __name__ == "__main__":
    main()
