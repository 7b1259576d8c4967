"""What pyproject.toml cannot say: the C core is compiled by cffi, once for all environments."""

import os
from pathlib import Path

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer_group

CORE = "hbmcomm/_native/_core.abi3.so"


class BuildCore(build_ext):
    """Environments share the binary beside its sources; ranks may have it mapped."""

    def run(self) -> None:
        """Compile, unless an editable install finds a binary newer than its sources."""
        _, *sources = self.extensions[0].sources  # the first is what cffi generates
        inputs = [__file__, *sources, *self.extensions[0].depends]
        if self.force or not self.inplace or newer_group(inputs, CORE):
            super().run()

    def copy_file(self, infile: str, outfile: str, **options: int) -> None:
        """Put a new file in the place of the old one; the content of a mapped one never changes."""
        scratch = f"{outfile}.{os.getpid()}"
        super().copy_file(infile, scratch, **options)
        Path(scratch).replace(outfile)


setup(
    cffi_modules=[f"hbmcomm/_native/build.py:{name}" for name in ("ffibuilder", "libraries")],
    cmdclass={"build_ext": BuildCore},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
