"""The wheels and the source distribution, as they are published: made, checked, and nothing else.

The C core keeps to Python's stable ABI, so one wheel for an architecture serves every Python. zig,
a C compiler that pip installs, compiles it for Arm as well, and against the symbols of an older C
library than this machine's, so that wheels run wherever that one or a newer is. The C++ part of
hbmcomm.torch is in the wheel too, compiled for each minor version of torch.
"""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.console import Display, Stages
from experiments.model.checkout import BUILD, ROOT
from experiments.model.errors import ExperimentsError, Missing
from experiments.processes import scratch
from experiments.processes.executables import captured
from experiments.provision import test_runner, torch_shims, wheelhouse
from experiments.provision.mpi_wheels import run

ARCHITECTURES = ("x86_64", "aarch64")
GLIBC = (2, 28)
"""The oldest C library that the wheels run with: Debian 10, RHEL 8, Ubuntu 20.04."""
REMEDY = "see what pip and the compiler say above"
SYMBOLS = re.compile(r"manylinux_(\d+)_(\d+)_")
BESIDE = {"PyGILState_Check", "PyObject_Vectorcall"}
"""Functions of Python that the C++ part calls beside those of the stable ABI of Python 3.11. All
Pythons from 3.9 on have them."""
COMPILER = """#!/bin/sh
exec "{python}" -P -m ziglang cc -target {arch}-linux-gnu.{major}.{minor} -fno-sanitize=undefined \\
    -ffile-prefix-map="{sources}"=. "$@"
"""
BACKEND = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"


def make(
    out: Path,
    architectures: Sequence[str],
    stages: Stages,
    root: Path = ROOT,
    torchs: Sequence[str] = torch_shims.VERSIONS,
) -> list[Path]:
    """Make wheels and the source distribution in `out`; those of the same names are replaced.

    Args:
        torchs: the versions of torch that the wheels hold a compiled C++ part for.

    Raises:
        Missing: the tools cannot be had, or something does not compile.
        ExperimentsError: a check fails; then `out` is as it was.
    """
    with stages.stage("tools"):
        test_runner.ensure_release(root)
    with scratch.folder(BUILD, ".release-") as folder:
        made = folder / "dist"
        made.mkdir()
        shims = Display(len(architectures) * len(torchs), 0, stages.console)
        with stages.stage("C++ parts for torch", spinner=False), shims:
            for arch in architectures:
                wheelhouse.copy_sources(root, folder / f"sources-{arch}")
                torch_shims.add(folder / f"sources-{arch}", arch, GLIBC, torchs, shims)
        for arch in architectures:
            with stages.stage(f"wheel for {arch}"):
                _wheel(arch, folder, made)
        with stages.stage("source distribution"):
            _source(root, folder, made)
        with stages.stage("checks"):
            for wheel in sorted(made.glob("*.whl")):
                _check_wheel(wheel)
            _succeed(["twine", "check", "--strict", *map(str, sorted(made.iterdir()))])
        out.mkdir(parents=True, exist_ok=True)
        return [path.replace(out / path.name) for path in sorted(made.iterdir())]


def _wheel(arch: str, folder: Path, made: Path) -> None:
    sources, compiler = folder / f"sources-{arch}", folder / f"cc-{arch}"
    major, minor = GLIBC
    compiler.write_text(
        COMPILER.format(
            python=sys.executable, arch=arch, major=major, minor=minor, sources=sources
        ),
        encoding="utf-8",
    )
    compiler.chmod(0o755)
    variables = {
        "CC": str(compiler),
        # stripped: what zig adds of its own names folders
        "LDSHARED": f"{compiler} -shared -s -Wl,--build-id=none",
        "CFLAGS": "",
        "LDFLAGS": "",
        "ZIG_GLOBAL_CACHE_DIR": str(BUILD / "zig"),
        "ZIG_LOCAL_CACHE_DIR": str(folder / f"zig-{arch}"),
        "_PYTHON_HOST_PLATFORM": f"manylinux_{major}_{minor}_{arch}",
    }
    command = wheelhouse.wheel_command(sources, made)
    lack = f"the wheel for {arch} cannot be built"
    run(command, lack, REMEDY, wheelhouse.REPRODUCIBLE | variables)


def _source(root: Path, folder: Path, made: Path) -> None:
    sources = folder / "sources"
    wheelhouse.copy_sources(root, sources)
    done = captured([sys.executable, "-P", "-c", BACKEND, str(made)], cwd=sources)
    if done.returncode:
        raise Missing(f"the source distribution cannot be made:\n{done.stderr.strip()}")


def _check_wheel(wheel: Path) -> None:
    """Hold a wheel's symbols against its name: those of the C and C++ libraries, and of Python.

    auditwheel's own verdict counts torch's libraries, which no wheel but torch's has, as lacking.
    """
    shown = _succeed(["auditwheel", "show", "--json", str(wheel)])
    about = json.loads(shown)
    needs = SYMBOLS.match(about["sym_tag"])
    beside = set(about["external_libs"]) - set(torch_shims.LIBRARIES)
    if needs is None or (int(needs[1]), int(needs[2])) > GLIBC or beside:
        raise ExperimentsError(f"{wheel.name} needs more than its name says:\n{shown}")
    words = [sys.executable, "-P", "-m", "abi3audit", "--report", str(wheel)]
    (audited,) = json.loads(captured(words).stdout)["specs"].values()  # it fails for any of BESIDE
    for library in audited["wheel"]:
        result = library["result"]
        others = {*result["non_abi3_symbols"], *result["future_abi3_objects"]}
        if others - (BESIDE if library["name"].startswith("torch") else set()):
            raise ExperimentsError(
                f"{wheel.name}: {library['name']} is bound to a Python: {others}"
            )


def _succeed(words: Sequence[str]) -> str:
    """What a tool prints.

    Raises:
        ExperimentsError: it finds a fault.
    """
    done = captured([sys.executable, "-P", "-m", *words])
    if done.returncode:
        raise ExperimentsError(f"{' '.join(words)}:\n{done.stdout}{done.stderr}")
    return done.stdout
