"""What pyproject.toml cannot say: the C core is compiled by cffi, once for all environments.

Where there is no compiler, HBMCOMM_WHEEL names a wheel of the same sources, and the core is its.
"""

import hashlib
import os
import zipfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import SetupError
from setuptools.modified import newer_group

CORE = "hbmcomm/_native/_core.abi3.so"
DIGEST = "hbmcomm/_native/_core.sha256"  # in wheels: of the sources that the core was compiled from
WHEEL = "HBMCOMM_WHEEL"


class BuildCore(build_ext):
    """Environments share the binary beside its sources; ranks may have it mapped."""

    def run(self) -> None:
        """Compile, unless an editable install finds a binary newer than its sources."""
        _, *sources = self.extensions[0].sources  # the first is what cffi generates
        inputs = [__file__, *sources, *self.extensions[0].depends]
        if self.inplace and not self.force and not newer_group(inputs, CORE):
            return
        made = Path("" if self.inplace else self.build_lib)
        if wheel := os.environ.get(WHEEL):
            core = made / CORE
            core.parent.mkdir(parents=True, exist_ok=True)
            _replace(core, _core_of(wheel, _digest(inputs)))
        else:
            super().run()
        if not self.inplace:
            (made / DIGEST).write_text(_digest(inputs), encoding="ascii")

    def build_extensions(self) -> None:
        """Compile on all cores that this process has: setuptools compiles file after file."""
        compile_files = self.compiler.compile

        def compile_beside(sources: Sequence[str], **options: Any) -> list[str]:
            with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
                objects = pool.map(lambda source: compile_files([source], **options), sources)
                return [path for paths in objects for path in paths]

        self.compiler.compile = compile_beside
        super().build_extensions()

    def copy_file(self, infile: str, outfile: str, **options: int) -> None:
        """Put a new file in the place of the old one; the content of a mapped one never changes."""
        _replace(Path(outfile), Path(infile).read_bytes())


def _replace(path: Path, content: bytes) -> None:
    scratch = path.with_name(f"{path.name}.{os.getpid()}")
    scratch.write_bytes(content)
    scratch.chmod(0o755)
    scratch.replace(path)


def _digest(paths: Iterable[str]) -> str:
    """Of the sources' names and contents, wherever their folder is."""
    digest = hashlib.sha256()
    for name in sorted(os.path.relpath(path) for path in paths):
        content = Path(name).read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _core_of(wheel: str, digest: str) -> bytes:
    """The compiled core of a wheel that was made of these sources."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            sources, core = archive.read(DIGEST).decode(), archive.read(CORE)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise SetupError(
            f"{WHEEL}={wheel} is no wheel of hbmcomm: {error}; name one that ./inv wheels made"
        ) from None
    if sources != digest:
        raise SetupError(
            f"{WHEEL}={wheel} has a core of other sources than this checkout's; "
            "take the wheel of this revision, or unset the variable where there is a compiler"
        )
    return core


setup(
    cffi_modules=[f"hbmcomm/_native/build.py:{name}" for name in ("ffibuilder", "libraries")],
    cmdclass={"build_ext": BuildCore},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
