"""Rank program: rank programs of this folder one after the other; MPI and torch start once.

Usage: several.py FOLDER NAME ... Each program gets a folder of its own; what it prints is written
behind its name. Each rank prints "NAME: done" behind a program that was right.
"""

import contextlib
import io
import runpy
import sys
from pathlib import Path

folder, *names = sys.argv[1:]
for name in names:
    own = Path(folder) / name
    own.mkdir(exist_ok=True)
    sys.argv[1:] = [str(own)]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        runpy.run_path(str(Path(__file__).with_name(f"{name}.py")))
    for line in (*printed.getvalue().splitlines(), "done"):
        sys.stdout.write(f"{name}: {line}\n")
    sys.stdout.flush()
