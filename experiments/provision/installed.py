"""Which packages are installed on the system and in an image, and in which version. Reads.

An empty answer means that there is no dpkg, on the system or in the image.
"""

import io
import re
import tarfile
from collections.abc import Iterable

import docker

from experiments.processes.executables import captured
from experiments.provision import removal
from experiments.provision.engine import FAILURES

SYSTEM = (
    *("docker*", "containerd*", "runc", "podman", "crun", "charliecloud*", "apptainer*"),
    *("qemu-system-x86", "libmemkind0", "libhwloc*", "libnuma*", "*openmpi*", "*mpich*"),
    *("libfabric*", "libucx*", "libc6", "gcc", "python3", "mmdebstrap", "util-linux"),
)
"""Debian packages that containers, MPI and memory of the host come from, as dpkg's patterns."""
STATUS = "/var/lib/dpkg/status"


def of_system(patterns: Iterable[str] = SYSTEM) -> dict[str, str]:
    """{package: version} on this machine, of those that the patterns name."""
    form = "${db:Status-Status} ${Package} ${Version}\n"
    command = ["dpkg-query", "--show", f"--showformat={form}", *patterns]
    try:
        done = captured(command)
    except OSError:
        return {}
    rows = (line.split(" ") for line in done.stdout.splitlines())
    return {row[1]: row[2] for row in rows if row[0] == "installed"}


def of_image(client: docker.DockerClient, image: str) -> dict[str, str]:
    """{Debian package: version} in an image; starts nothing in it."""
    try:
        removal.remove_abandoned(client)
        container = client.containers.create(image, labels=removal.own())
        try:
            chunks, _ = container.get_archive(STATUS)
            packed = io.BytesIO(b"".join(chunks))
        finally:
            container.remove(force=True)
    except FAILURES:
        return {}
    with tarfile.open(fileobj=packed) as tar:
        status = tar.extractfile(tar.getmembers()[0])
        return _from_status(status.read().decode(errors="replace")) if status else {}


def _from_status(text: str) -> dict[str, str]:
    """The installed packages in dpkg's status file."""
    found = {}
    for paragraph in text.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version|Status): (.*)$", paragraph, re.MULTILINE))
        if fields.get("Status", "").endswith(" installed"):
            found[fields["Package"]] = fields["Version"]
    return found
