"""Has an engine build an image, and keeps its output. Knows no image in particular."""

import re
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import docker
from docker.errors import DockerException, ImageNotFound

from experiments.model.errors import ExperimentsError
from experiments.processes.files import last_lines
from experiments.provision.engine import FAILURES

PATIENCE = 600  # seconds that one step may be silent
LAST_LINES = 8  # of the log, in the message of a failed build
BUILT = re.compile(r"^Successfully built ([0-9a-f]+)$", re.MULTILINE)
"""The engine's last word; Docker's and Podman's alike, and the SDK goes by it too."""


class ImageBuildFailed(ExperimentsError):
    """The image does not build; the text holds the last lines of the log."""


def build(
    client: docker.DockerClient,
    options: Mapping[str, Any],
    files: Iterable[tuple[str, Path]],
    log: Path,
) -> str:
    """Build with the engine's own builder; half-made containers go.

    Returns the image's id: its name is another's as soon as another checkout builds under it.

    Args:
        options: keyword arguments of the Docker SDK's api.build, "tag" among them.
        files: name in the build context, and file, of everything that the engine is sent.
        log: overwritten.

    Raises:
        ImageBuildFailed: it does not build, or the engine is gone.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile() as archive, log.open("w", encoding="utf-8") as output:
        pack(files, archive)
        arguments = {**options, "custom_context": True, "rm": True, "forcerm": True}
        try:
            for answer in client.api.build(
                fileobj=archive, decode=True, timeout=PATIENCE, **arguments
            ):
                output.write(answer.get("stream", ""))
                if "error" in answer:
                    raise DockerException(answer["error"])
            output.flush()
            built = BUILT.findall(log.read_text(encoding="utf-8", errors="replace"))
            if not built:
                raise DockerException("the engine names no image")
        except FAILURES as error:
            output.write(f"{error}\n")
            output.flush()
            raise ImageBuildFailed(
                f"the image {options['tag']} does not build; its log ends with\n"
                + "\n".join(f"    {line}" for line in last_lines(log, LAST_LINES))
                + f"\nthe whole of it is in {log.parent.name}/{log.name}"
            ) from error
    return str(built[-1])


def labelled(client: docker.DockerClient, name: str, label: str, value: str) -> str | None:
    """The id of the image of that name, where its label has this value."""
    try:
        image = client.images.get(name)
    except ImageNotFound:
        return None
    return str(image.id) if image.labels.get(label) == value else None


def pack(files: Iterable[tuple[str, Path]], archive: IO[bytes]) -> None:
    """The build context as a tar file, ready to be read."""
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, path in files:
            tar.add(path, arcname=name, recursive=False, filter=_readable)
    archive.seek(0)


def _readable(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Readable for every user of the image, whatever the umask of this checkout was."""
    entry.mode = 0o755 if entry.mode & 0o100 else 0o644
    return entry
