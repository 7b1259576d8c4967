"""Horovod in the environments of MPIs on this machine, compiled there with their compilers.

Three points of its last release are changed. It asks for C++14, where PyTorch needs C++17 since
2.1. With settings from the environment it cannot be initialised again after a shutdown, and with
gloo it cannot after a shutdown with MPI, which counts as enabled still.
"""

import os
import re
import shutil
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from experiments.model.checkout import BUILD, ROOT
from experiments.model.errors import Missing
from experiments.model.workloads import HOROVOD_FOLDER
from experiments.processes import scratch
from experiments.provision import mpi_wheels

NAME = "horovod"
TOOLS = ("cmake", "make", "g++")
STANDARD = (r"(CMAKE_CXX_STANDARD) 1[14]\b", r"\1 17")
AGAIN = (  # what a setting has fixed has no entry in this vector any more
    r"\} else (\{\s+Eigen::VectorXd v = TunableParameter::BestValue\(\);)",
    r"} else if (fixed_values_.find(variable) == fixed_values_.end()) \1",
)
DISABLED = (  # a library that was shut down is taken for enabled
    r"(EnvFinalize\(\);\s+\}|reset_ = true;)(?=\s+\}\s)",
    r"\1\n  enabled_ = false;",
)
CHANGES = {
    "CMakeLists.txt": STANDARD,
    "horovod/torch/CMakeLists.txt": STANDARD,
    "horovod/common/parameter_manager.cc": AGAIN,
    "horovod/common/mpi/mpi_context.cc": DISABLED,
    "horovod/common/gloo/gloo_context.cc": DISABLED,
}
"""By file: a pattern of Python's re, and what replaces it."""
PARTS = {  # Horovod's own variables
    "HOROVOD_WITH_MPI": "1",
    "HOROVOD_WITH_PYTORCH": "1",
    "HOROVOD_WITH_GLOO": "1",
    "HOROVOD_WITHOUT_TENSORFLOW": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
}
LACK = "horovod cannot be had: {} failed"
REMEDY = "see that pip reaches its registry, or leave out transport horovod"


def ensure(flavour: str, say: Callable[[str], None], root: Path = ROOT) -> None:
    """Horovod for the ranks of an MPI, which have torch already; built where it is missing.

    A line says why it is left out where the MPI has no compiler or this machine no cmake.

    Raises:
        Missing: pip cannot have its source, or it does not compile.
    """
    prefix = mpi_wheels.prefix(flavour, root)
    with scratch.locked(prefix, ".horovod.lock", say):
        target = prefix / HOROVOD_FOLDER
        if target.is_dir():
            return
        if lack := _lack(prefix):
            say(f"horovod is left out for {flavour}: {lack}")
            return
        say(f"horovod: compiling it for {flavour} (some minutes)")
        BUILD.mkdir(exist_ok=True)
        with scratch.folder(BUILD, "horovod-") as folder:
            wheel = _wheel(prefix, folder, root)
            made = folder / HOROVOD_FOLDER
            words = ("install", "--target", str(made), str(wheel))
            install = mpi_wheels.pip_command(prefix / "bin/python", root, *words)
            mpi_wheels.run(install, LACK.format("installing it"), REMEDY)
            shutil.move(made, target)


def _lack(prefix: Path) -> str:
    missing = [name for name in TOOLS if shutil.which(name) is None]
    if missing:
        return f"no {', '.join(missing)} on this machine; apt-get install cmake g++ make"
    return "" if (prefix / "bin/mpicxx").is_file() else "its wheel has no mpicxx"


def _wheel(prefix: Path, folder: Path, root: Path) -> Path:
    """Horovod's wheel, for the MPI and the torch of an environment."""
    pip = partial(mpi_wheels.pip_command, prefix / "bin/python", root)
    fetch = pip("download", "--no-deps", "-d", str(folder), "--no-binary", NAME, NAME)
    mpi_wheels.run(fetch, LACK.format("fetching its source"), REMEDY)
    (packed,) = folder.glob("horovod-*.tar.gz")
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    source = folder / packed.name.removesuffix(".tar.gz")
    for name, (pattern, replacement) in CHANGES.items():
        text, found = re.subn(pattern, replacement, (source / name).read_text("utf-8"))
        if not found:
            raise Missing(f"{name} of {source.name} is not as expected: see CHANGES")
        (source / name).write_text(text, encoding="utf-8")
    path = f"{prefix / 'bin'}{os.pathsep}{os.environ['PATH']}"  # mpicxx first
    make = pip("wheel", "--no-deps", "-w", str(folder), str(source))
    mpi_wheels.run(make, LACK.format("compiling it"), REMEDY, PARTS | {"PATH": path})
    (wheel,) = folder.glob("horovod-*.whl")
    return wheel
