"""The C++ headers of a version of torch, taken out of its wheel without fetching the rest of it.

A wheel of torch has up to 0.9 GB and its headers have 10 MB, which are next to each other in it.
"""

import io
import json
import sys
import urllib.request
import zipfile
from pathlib import Path
from urllib.error import URLError

from experiments.model.checkout import BUILD
from experiments.model.errors import Missing
from experiments.processes import scratch
from experiments.processes.executables import captured

HEADERS = BUILD / "torch-headers"
FOLDERS = tuple(f"torch/include/{name}/" for name in ("ATen", "c10", "caffe2", "pybind11", "torch"))
PYTHON = "3.12"  # headers are the same for every Python; all versions here have a wheel for it
AT_ONCE = 4 * 2**20  # bytes of a request


class RemoteFile(io.RawIOBase):
    """A file behind a URL, read by parts."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url, self._at, self._begin, self._part = url, 0, 0, b""
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD")) as answer:
            self._size = int(answer.headers["Content-Length"])

    def seekable(self) -> bool:
        """Yes."""
        return True

    def readable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """Where the next byte is read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set where the next byte is read."""
        self._at = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence] + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Read from the part that was fetched last, or fetch another one.

        Raises:
            Missing: the server gives no parts.
        """
        end = self._size if size < 0 else min(self._at + size, self._size)
        if not self._begin <= self._at <= end <= self._begin + len(self._part):
            self._part = self._fetched(self._at, min(max(end, self._at + AT_ONCE), self._size))
            self._begin = self._at
        part = self._part[self._at - self._begin : end - self._begin]
        self._at = end
        return part

    def _fetched(self, begin: int, end: int) -> bytes:
        request = urllib.request.Request(self._url, headers={"Range": f"bytes={begin}-{end - 1}"})
        with urllib.request.urlopen(request) as answer:
            if answer.status != 206:
                raise Missing(f"{self._url}: its server does not give parts of a file")
            part: bytes = answer.read()
        return part


def ensure(version: str, arch: str) -> Path:
    """The folder of the headers of a version of torch for a machine; fetched once.

    Raises:
        Missing: pip knows no such wheel, or its headers cannot be fetched.
    """
    folder = HEADERS / f"{version}-{arch}"
    if not folder.is_dir():
        HEADERS.mkdir(parents=True, exist_ok=True)
        url = _url(version, arch)
        with scratch.folder(HEADERS, ".new-") as made:
            try:
                with zipfile.ZipFile(RemoteFile(url)) as wheel:
                    members = [name for name in wheel.namelist() if name.startswith(FOLDERS)]
                    wheel.extractall(made, members)
            except (URLError, zipfile.BadZipFile) as error:
                raise Missing(f"torch's headers cannot be read from {url}: {error}") from error
            scratch.settle(made / "torch/include", folder)
    return folder


def _url(version: str, arch: str) -> str:
    """Where pip would fetch the wheel from."""
    platform = f"--platform=manylinux_2_28_{arch}"
    done = captured(
        [
            *(sys.executable, "-P", "-m", "pip", "install", "-q", "--dry-run", "--no-deps"),
            *("--disable-pip-version-check", "--report=-", "--target=unused"),
            *("--only-binary=:all:", "--implementation=cp", f"--python-version={PYTHON}", platform),
            f"torch=={version}",
        ]
    )
    if done.returncode:
        raise Missing(f"pip knows no wheel of torch {version} for {arch}:\n{done.stderr.strip()}")
    url: str = json.loads(done.stdout)["install"][0]["download_info"]["url"]
    return url
