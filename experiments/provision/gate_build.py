"""Compiles what a user's program is run with: the keeper, the preloaded library, and what measures
a cache line beside it.

They are compiled by this machine's C compiler, once for each state of their sources, for its own
architecture or, with a cross-compiler, for another one.
"""

import hashlib
import os
import shlex
import shutil
from pathlib import Path

from experiments.model.checkout import BUILD, ROOT
from experiments.model.errors import Missing
from experiments.model.program import KEEPER, LARGE, LIBRARY, LINE
from experiments.processes import scratch
from experiments.processes.executables import captured, find

SOURCES = ROOT / "experiments" / "programs" / "gate"
PLACE = BUILD / "gate"
FLAGS = ("-O2", "-g0", "-std=gnu11", "-Wall", "-Wextra", "-Wshadow", "-Werror")
# no library is named, so it runs with the C library of each process; its thread's variable has a
# fixed place, for which no function of one C library is called
SHARED = (
    *("-shared", "-fPIC", "-nostdlib", "-fvisibility=hidden", "-fno-stack-protector"),
    # functions of libdl, which older C libraries have apart, are looked for when they are called
    *("-U_FORTIFY_SOURCE", "-ftls-model=initial-exec", "-Wl,-z,lazy", "gate.c"),
)
WORDS = {
    KEEPER: ("-static", "keeper.c"),
    LIBRARY: SHARED,
    LARGE: ("-DLARGE_COUNTS", *SHARED),
    LINE: ("-static", "line.c"),
}


def ensure(compiler: str = "") -> Path:
    """The folder with all of them, compiled where the sources have changed.

    Args:
        compiler: a command; the variable CC, or cc, where it is "".

    Raises:
        Missing: there is no compiler, or it cannot link a static program.
    """
    words = shlex.split(compiler or os.environ.get("CC") or "cc")
    if not words or find(words[0]) is None:
        raise Missing(
            f"no C compiler {words[0] if words else 'in CC'!r}, which --program needs once: "
            "sudo apt-get install -y gcc libc6-dev"
        )
    texts = [path.read_bytes() for path in sorted(SOURCES.iterdir()) if path.suffix in (".c", ".h")]
    inputs = b"\0".join([*texts, repr((words, WORDS, FLAGS)).encode()])
    target = PLACE / f"{Path(words[0]).name}-{hashlib.sha256(inputs).hexdigest()[:16]}"
    with scratch.locked(PLACE), scratch.folder(PLACE, ".making-") as made:
        if not target.is_dir():
            (made / "new").mkdir()
            for name, flags in WORDS.items():
                _compile([*words, *FLAGS, *flags, "-o", str(made / "new" / name)], name)
            scratch.settle(made / "new", target)
            scratch.remove_superseded(target, made)
    return target


def _compile(words: list[str], name: str) -> None:
    done = captured(words, cwd=SOURCES)
    if done.returncode == 0:
        return
    errors = [line for line in done.stderr.splitlines() if "error" in line or "cannot find" in line]
    reason = (errors or done.stderr.splitlines() or ["no message"])[0]
    install = ": sudo apt-get install -y libc6-dev, or glibc-static elsewhere"
    remedy = install if "-static" in words else ""
    raise Missing(f"{words[0]} cannot make {name} for --program: {reason}{remedy}")


def put(folder: Path, compiled: Path) -> None:
    """Copy what a program runs with into the folder of a run, for anyone to read."""
    for name in (KEEPER, LIBRARY, LARGE):
        shutil.copy(compiled / name, folder / name)
        (folder / name).chmod(0o755)
