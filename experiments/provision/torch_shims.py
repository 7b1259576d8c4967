"""Compiles the C++ part of hbmcomm.torch for what is published: for every torch and machine.

zig's compiler takes the headers of libstdc++, the library that torch uses, from Debian's packages.
What these headers call and older releases lack comes from `older_libstdcxx`. torch's libraries are
not here: the parts are linked with empty ones of the same names.
"""

import os
import platform
import runpy
import sys
import sysconfig
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from experiments.console import Display
from experiments.model.checkout import BUILD
from experiments.model.errors import Missing
from experiments.processes import scratch
from experiments.provision import torch_headers
from experiments.provision.mpi_wheels import run

VERSIONS = ("2.10.0", "2.11.0", "2.12.0", "2.13.0", "2.14.0", "2.15.0")
"""The first release of each minor version; later ones keep its C++ interface."""
LIBRARIES = ("libc10.so", "libtorch_cpu.so", "libtorch_python.so")
"""Of torch: a process that loads a compiled part has loaded them."""
OLDER = Path(__file__).parent / "older_libstdcxx"
LIBSTDCXX = BUILD / "libstdcxx"
GCC = "12"  # its headers serve C++20, which torch 2.13 and newer need
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
FLAGS = (
    *("-std=c++20", "-fPIC", "-shared", "-s", "-nostdinc++", "-nostdlib++"),
    *("-fno-sanitize=undefined", "-Wl,--build-id=none", "-Wl,-z,now", "-Wl,--no-as-needed"),
    "-Wno-inconsistent-missing-override",  # a function that only newer versions of torch declare
)
REMEDY = "see what the compiler says above"
APT = f"on Debian 12 or Ubuntu 24.04, where apt has GCC {GCC}: apt-get update, and try again"


def add(
    sources: Path, arch: str, glibc: tuple[int, int], versions: Sequence[str], display: Display
) -> None:
    """Add compiled parts to the sources of a wheel; versions that pip cannot get are left out.

    Raises:
        Missing: a tool cannot be had, or something does not compile.
    """
    known = runpy.run_path(str(sources / "hbmcomm/compiled_shims.py"))
    known["COMPILED"].mkdir()
    with scratch.folder(BUILD, ".shims-") as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        target = f"{arch}-linux-gnu.{glibc[0]}.{glibc[1]}"
        compiler = Compiler(target, _libstdcxx(arch), folder)
        compiler.make_stubs()
        running: dict[str, Future[None]] = {}
        for version in versions:
            name = known["file_name"](version.rpartition(".")[0], arch)
            try:
                headers = torch_headers.ensure(version, arch)
            except Missing as error:
                display.say(f"the wheel for {arch} has no part for torch {version}: {error}")
                continue
            out = known["COMPILED"] / name
            running[version] = pool.submit(compiler.compile, sources, headers, known["FLAGS"], out)
        for version in versions:
            display.begin(f"torch {version} for {arch}")
            if version in running:
                running[version].result()
            display.end()


class Compiler:
    """zig's, with libstdc++ and with torch's libraries by name.

    Args:
        target: as zig names it, with the oldest C library.
        libstdcxx: Debian's packages of it, unpacked.
        folder: for temporary files.
    """

    def __init__(self, target: str, libstdcxx: Path, folder: Path) -> None:
        self._zig = [sys.executable, "-P", "-m", "ziglang"]
        self._target, self._libstdcxx, self._folder = ["-target", target], libstdcxx, folder
        self._variables = {
            "ZIG_GLOBAL_CACHE_DIR": str(BUILD / "zig"),
            "ZIG_LOCAL_CACHE_DIR": str(folder / "zig"),
        }

    def make_stubs(self) -> None:
        """Empty libraries of the names of torch's, and what older releases of libstdc++ lack."""
        for name in LIBRARIES:
            words = ["-shared", "-nostdlib", f"-Wl,-soname,{name}", "-x", "c", "/dev/null"]
            self._run("cc", [*words, "-o", str(self._folder / name)], f"a stub of {name}")
        words = ["-O2", "-Wall", "-Werror", "-fPIC", "-c", str(OLDER / "symbols.c")]
        self._run("cc", [*words, "-o", str(self._folder / "symbols.o")], "symbols.c")

    def compile(self, sources: Path, headers: Path, flags: Sequence[str], out: Path) -> None:
        """Compile the C++ part in the sources of a wheel."""
        shim, maps = sources / "hbmcomm/torch/shim", {sources: ".", headers: "torch"}
        maps |= {self._libstdcxx: "libstdcxx", self._folder: "."}
        whole = self._folder / f"{out.stem}.cpp"  # torch's headers take the time: read them once
        whole.write_text(
            "".join(f'#include "{path.name}"\n' for path in sorted(shim.glob("*.cpp")))
        )
        python = sysconfig.get_path("include")
        words = [
            *(*flags, *FLAGS, *(f"-ffile-prefix-map={path}={name}" for path, name in maps.items())),
            *(f"-I{OLDER}", *(f"-I{path}" for path in self._standard_headers())),
            *(f"-I{shim}", f"-I{sources / 'hbmcomm/_native'}", "-isystem", python),
            *("-isystem", str(headers), "-isystem", str(headers / "torch/csrc/api/include")),
            *("-o", str(out), str(whole), str(self._folder / "symbols.o")),
            *(str(self._folder / name) for name in LIBRARIES),
            *(str(self._only(name)) for name in ("libstdc++.so.6", "libgcc_s.so.1")),
        ]
        self._run("c++", words, out.name)

    def _standard_headers(self) -> list[Path]:
        """The folders of those for all machines, and of those for one."""
        return [self._only(f"bits/{name}").parents[1] for name in ("stl_vector.h", "c++config.h")]

    def _only(self, name: str) -> Path:
        (path,) = self._libstdcxx.rglob(name)
        return path

    def _run(self, verb: str, words: list[str], what: str) -> None:
        command = [*self._zig, verb, *self._target, *words]
        run(command, f"{what} does not compile", REMEDY, self._variables)


def _libstdcxx(arch: str) -> Path:
    """Debian's packages of libstdc++ for a machine, unpacked in a folder; fetched once.

    Raises:
        Missing: apt does not have them.
    """
    folder = LIBSTDCXX / f"{GCC}-{arch}"
    if not folder.is_dir():
        LIBSTDCXX.mkdir(parents=True, exist_ok=True)
        end = "" if arch == platform.machine() else f"-{DEBIAN[arch]}-cross"
        names = [f"{name}{end}" for name in (f"libstdc++-{GCC}-dev", "libstdc++6", "libgcc-s1")]
        lack = f"libstdc++ of GCC {GCC} for {arch} cannot be had"
        with scratch.folder(LIBSTDCXX, ".new-") as made:
            run(["apt-get", "download", "-q", *names], lack, APT, cwd=made)
            for package in made.glob("*.deb"):
                run(["dpkg-deb", "-x", str(package), str(made / "root")], lack, APT)
            scratch.settle(made / "root", folder)
    return folder
