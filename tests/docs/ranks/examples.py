"""Rank program: runs the Python blocks of pages; those of a page are one program.

Takes a JSON file, [[page, [[line, text], ...]], ...], and lists in FILE.RANK what has run: what the
ranks print can be mixed.
"""

import json
import sys
import traceback
from pathlib import Path

from mpi4py import MPI

ran = []
for page, blocks in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
    names = {"__name__": "__main__"}
    for line, text in blocks:
        try:
            exec(compile("\n" * (line - 1) + text, page, "exec"), names)
        except BaseException:  # the other ranks would wait for this one
            traceback.print_exc()
            sys.stderr.flush()
            MPI.COMM_WORLD.Abort(1)
        ran.append(f"{page}:{line}\n")
Path(f"{sys.argv[1]}.{MPI.COMM_WORLD.rank}").write_text("".join(ran), encoding="utf-8")
