"""Runs an unchanged program with a Communicator in the place of MPI.COMM_WORLD.

    mpiexec -n 4 python -m hbmcomm program.py ARGUMENT ...

Knows the command line. mpi4py.run, which does the same for MPI.COMM_WORLD itself, runs the program
and ends the job where a rank ends by an exception.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

DESCRIPTION = """\
Run an mpi4py program as it is, with a hbmcomm.Communicator in the place of MPI.COMM_WORLD. Its
collectives, and those of every package that it imports, then go by hbmcomm; those of communicators
derived from MPI.COMM_WORLD too. MPI.COMM_SELF and all other calls of MPI stay mpi4py's."""

EXAMPLES = """\
examples:
  mpiexec -n 4 python -m hbmcomm program.py --size 100   a file, with its own arguments
  mpiexec -n 4 python -m hbmcomm -m package.module       a module, as python -m runs it
  mpiexec -n 4 python -m hbmcomm --kind hbw program.py   its communicator's arrays in HBM
  mpiexec -n 4 python -m hbmcomm --numpy-memory prog.py  its NumPy arrays in shared memory too

Options of hbmcomm come before the program. To see the transport in use, print MPI.COMM_WORLD in the
program. To compare with MPI alone, run the same command with mpi4py in the place of hbmcomm:
  mpiexec -n 4 python -m mpi4py program.py --size 100

exit codes:
  The program's own. A rank that ends by an exception, or by sys.exit with a code other than 0, ends
  the whole job with that code (1 for an exception). 2: the command line is wrong. 1, with one line
  of rank 0: this machine has no such kind, or its ranks cannot use the transport."""


def parser() -> argparse.ArgumentParser:
    parsing = argparse.ArgumentParser(
        prog="python -m hbmcomm",
        usage="%(prog)s [options] (PROGRAM | -m MODULE | -c COMMAND | -) [ARGUMENT ...]",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parsing.add_argument(
        "--kind",
        help="memory of the communicator's arrays, a name of hbmcomm.KINDS (default: hbw where the "
        "machine has HBM, else regular)",
    )
    parsing.add_argument(
        "--transport",
        default="auto",
        help="auto, direct, hierarchical, mpi or pickle (default: auto, the fastest that all ranks "
        "can use)",
    )
    parsing.add_argument(
        "--numpy-memory",
        action="store_true",
        help="allocate NumPy arrays of 64 KiB and more in the communicator's memory (main thread): "
        "with transport direct, collectives of such arrays need no copy",
    )
    rest = argparse.REMAINDER
    parsing.add_argument("-m", dest="module", nargs=rest, metavar="MODULE", help="a module to run")
    parsing.add_argument("-c", dest="command", nargs=rest, metavar="COMMAND", help="code to run")
    parsing.add_argument(
        "program", nargs=rest, metavar="PROGRAM", help="a Python file to run; -: standard input"
    )
    return parsing


def words_of_program(options: argparse.Namespace, usage: argparse.ArgumentParser) -> list[str]:
    """The program and its arguments, as mpi4py.run takes them; exits where there is none."""
    program: list[str] = options.program
    for flag, words in (("-m", options.module), ("-c", options.command)):
        if words is not None:
            if not words:
                usage.error(f"{flag} needs the {'module' if flag == '-m' else 'code'} to run")
            return [flag, *words]
    if not program or not program[0]:
        usage.error("no program; give a Python file, or -m and a module")
    if program[0] != "-" and not Path(program[0]).exists():
        usage.error(f"no file {program[0]!r} in {_folder()}; to run a module, put -m before it")
    return program


def _folder() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return "the current folder, which has been removed"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program that a command line names."""
    usage = parser()
    options = usage.parse_args(arguments)
    words = words_of_program(options, usage)

    from mpi4py import MPI  # starts MPI: not for --help, and not for a wrong command line
    from mpi4py.run import run_command_line, set_abort_status

    from hbmcomm.communicator import Communicator
    from hbmcomm.errors import HbmcommError

    world = MPI.COMM_WORLD
    try:
        replacement = Communicator(world, kind=options.kind, transport=options.transport)
        memory = replacement.numpy_memory() if options.numpy_memory else contextlib.nullcontext()
    except (HbmcommError, ValueError) as error:  # the same on all ranks
        sys.exit(f"hbmcomm: {error}" if world.rank == 0 else 1)
    replacement.Set_name(world.Get_name())
    MPI.COMM_WORLD = replacement  # type: ignore[misc]  # final for all others
    try:
        with memory:
            run_command_line(words)
    except BaseException as error:
        set_abort_status(error)
        raise


if __name__ == "__main__":
    main()
