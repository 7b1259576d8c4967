"""Runs IMB-MPI1 over one launch: `python -m experiments.programs.imb_run FOLDER CORES`.

FOLDER holds launch.json; progress, result.json and samples.npz are written beside it, as the
harness does. It is no rank itself: it starts a probe, which reports what the ranks run on and which
CPU each has, and then IMB-MPI1 on the same CPUs.
"""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.environments.mpiexec import mpiexec
from experiments.machine.facts import last_level_cache
from experiments.measure.lines import Progress
from experiments.model.errors import ExperimentsError
from experiments.model.launch import Launch
from experiments.programs import imb
from experiments.programs.launch_folder import read_json, read_launch, write_result

PREFIX = Path(sys.prefix)


def main(folder: Path, cores: int) -> None:
    """Measure, and write what the harness would have written."""
    began = time.time()
    launch = read_launch(folder)
    progress = Progress(folder / "progress")
    probe = [sys.executable, "-P", "-m", "experiments.programs.imb_probe", str(folder)]
    _ranks(launch, cores, probe, progress)
    probed = read_json(folder / "probe.json")
    cpus = [rank["cpu"] for rank in probed["ranks"]]
    runs, left_out = imb.plan(launch)
    cells: list[dict[str, Any]] = [
        imb.cell(*asked) | {"skipped": reason} for asked, reason in left_out.items()
    ]
    samples: dict[str, Any] = {}
    commands: list[str] = []
    called = "not started"
    for (operation, repetitions), sizes in runs.items():
        progress.cells(len(commands), len(runs))
        lengths = folder / "lengths"
        lengths.write_text(imb.length_list(sizes), encoding="ascii")
        words = imb.arguments(launch, operation, repetitions, sizes, lengths, last_level_cache())
        text = _ranks(launch, cores, _pinned(cpus, words), progress)
        rows = imb.parse(text, operation, launch.ranks)
        measured, held = imb.cells(operation, sizes, rows, len(cells))
        cells += measured
        samples |= held
        called = imb.version(text)
        commands.append(" ".join([imb.PROGRAM, *words]))
    external = {"version": called, "commands": commands, "differences": list(imb.DIFFERENCES)}
    parts = {**probed, "cells": cells, "external": external}
    write_result(folder, launch.to_dict(), began, samples, **parts)


def _pinned(cpus: Sequence[int], words: Sequence[str]) -> list[str]:
    """The program, each rank on its CPU."""
    pinned = [sys.executable, "-P", "-m", "experiments.programs.imb_pinned"]
    return [*pinned, ",".join(map(str, cpus)), str(PREFIX / "bin" / imb.PROGRAM), *words]


def _ranks(launch: Launch, cores: int, program: Sequence[str], progress: Progress) -> str:
    """What ranks of a program print, a tick for each line; their errors go to this process's own.

    Raises:
        ImbFailed: with the exit code, after what they printed.
    """
    # without the variables, which the driver has set
    argv, _ = mpiexec(imb.FLAVOUR, PREFIX, launch.ranks, cores, program)
    printed = []
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as ranks:
        for line in ranks.stdout or ():
            printed.append(line)
            progress.tick(1)
    if ranks.returncode:
        print(*printed, sep="", flush=True)
        raise imb.ImbFailed(f"{' '.join(argv)} failed with exit code {ranks.returncode}")
    return "".join(printed)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m experiments.programs.imb_run FOLDER CORES")
    try:
        main(Path(sys.argv[1]), int(sys.argv[2]))
    except ExperimentsError as error:
        sys.exit(str(error))
