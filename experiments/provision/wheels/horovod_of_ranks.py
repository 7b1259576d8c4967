"""Horovod in the environments of MPIs on this machine, compiled there with their compilers.

Three points of its last release are changed. It asks for C++14, where PyTorch needs C++17 since
2.1. With settings from the environment it cannot be initialised again after a shutdown, and with
gloo it cannot after a shutdown with MPI, which counts as enabled still.
"""

import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

from experiments.model.checkout import BUILD, ROOT
from experiments.model.errors import ExperimentsError
from experiments.model.systems.fusion import HOROVOD_FOLDER
from experiments.processes import scratch
from experiments.provision.wheels import mpi

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
LINES = 5  # of a failed build's output


class HorovodMissing(ExperimentsError):
    """Horovod cannot be had or built; the text holds the last lines and the one thing to do."""


def ensure(flavour: str, say: Callable[[str], None], root: Path = ROOT) -> None:
    """Horovod for the ranks of an MPI, which have torch already; built where it is missing.

    A line says why it is left out where the MPI has no compiler or this machine no cmake.

    Raises:
        HorovodMissing: pip cannot have its source, or it does not compile.
    """
    prefix = mpi.prefix(flavour, root)
    with scratch.locked(prefix, ".horovod.lock"):
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
            _run(
                mpi.install_command(prefix / "bin/python", root, "--target", str(made), str(wheel)),
                "installing it",
            )
            shutil.move(made, target)


def _lack(prefix: Path) -> str:
    missing = [name for name in TOOLS if shutil.which(name) is None]
    if missing:
        return f"no {', '.join(missing)} on this machine; apt-get install cmake g++ make"
    return "" if (prefix / "bin/mpicxx").is_file() else "its wheel has no mpicxx"


def _wheel(prefix: Path, folder: Path, root: Path) -> Path:
    """Horovod's wheel, for the MPI and the torch of an environment."""
    python = str(prefix / "bin/python")
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    constraints = ["--constraint", str(root / "constraints.txt")]
    alone = ["--no-deps", "--no-build-isolation"]
    source_alone = ["--no-binary", NAME, *alone, *constraints]
    _run([*pip, "download", "-q", *source_alone, "-d", str(folder), NAME], "fetching its source")
    (packed,) = folder.glob("horovod-*.tar.gz")
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    source = folder / packed.name.removesuffix(".tar.gz")
    for name, (pattern, replacement) in CHANGES.items():
        text, found = re.subn(pattern, replacement, (source / name).read_text("utf-8"))
        if not found:
            raise HorovodMissing(f"{name} of {source.name} is not as expected: see CHANGES")
        (source / name).write_text(text, encoding="utf-8")
    path = f"{prefix / 'bin'}{os.pathsep}{os.environ['PATH']}"  # mpicxx first
    _run(
        [*pip, "wheel", "-q", *alone, "-w", str(folder), str(source)],
        "compiling it",
        os.environ | PARTS | {"PATH": path},
    )
    (wheel,) = folder.glob("horovod-*.whl")
    return wheel


def _run(command: list[str], doing: str, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env=environment,
    )
    if done.returncode:
        lines = "\n".join(done.stdout.strip().splitlines()[-LINES:])
        raise HorovodMissing(
            f"horovod cannot be had: {doing} ended with exit code {done.returncode}:\n{lines}\n"
            "see that pip reaches its registry, or leave out transport horovod"
        )
