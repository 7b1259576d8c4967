"""The image of the container arm: built when something that goes into it changed, else reused.

Puts together what base_image.py and wheelhouse.py bring; runs no container.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker

from experiments.model.checkout import BUILD, ROOT
from experiments.processes.executables import captured
from experiments.processes.files import digest
from experiments.provision import base_image, building, engine, wheelhouse
from experiments.provision.base_image import Base
from experiments.provision.bootstrap import STAGE_LABEL
from experiments.provision.wheelhouse import Wheelhouse

DOCKERFILE = ROOT / "docker" / "Dockerfile"
LOG = BUILD / "image.log"
INPUTS_LABEL = "hbmcomm.inputs"
CHECKOUT_LABEL = "hbmcomm.checkout"
MPI_LABEL = "hbmcomm.mpi"
OTHERS_KEPT = "72h"  # how long nameless images of other checkouts stay: longer than a campaign
NO_WHEELS = Wheelhouse(Path(), (), "")
PREFIX = Path("/opt/hbmcomm")  # the environment in the image, as the Dockerfile makes it
TORCH_VARIABLES = {"TORCH_EXTENSIONS_DIR": str(PREFIX / "extensions")}
"""What ranks need to find the C++ part of hbmcomm.torch in the image."""


@dataclass(frozen=True)
class Image:
    """An image in the engine, and its inputs.

    Attributes:
        inputs: hash of everything that the image depends on.
        base_id: of the base image; base is its name.
        base_digest: NAME@sha256:... by which a registry serves the base; "" where none does.
        dockerfile: the text of its recipe.
        wheels: the wheels that the recipe installs.
    """

    tag: str
    id: str
    base: str
    python: str
    mpi: str
    inputs: str
    rebuilt: bool
    base_id: str = ""
    dockerfile: str = ""
    wheels: tuple[Path, ...] = ()
    base_digest: str = ""

    @property
    def variant(self) -> str:
        """As variant() has it."""
        return self.tag.rpartition(":")[2]


@engine.required(
    "the container engine failed while the image was looked for", "see that it runs: ./inv doctor"
)
def ensure(
    client: docker.DockerClient,
    base: str = base_image.AUTO,
    mpi: str = "openmpi",
    progress: Callable[[str], None] = print,
    torch: bool = False,
) -> Image:
    """The image for an MPI on a base, built if it is missing or out of date.

    Args:
        base: "auto", "bootstrap", or the name of an image.
        mpi: "openmpi", "mpich" or "impi".
        torch: with torch, and with the C++ part of hbmcomm.torch.

    Raises:
        Missing, ImageBuildFailed: each says what to do.
    """
    foundation = base_image.ensure(client, base, progress)
    wheels = wheelhouse.ensure(foundation.python, mpi, progress)
    more = NO_WHEELS
    if torch:
        more = wheelhouse.ensure(foundation.python, wheelhouse.FOR_TORCH, progress)
    name = tag(variant(mpi, torch))
    dockerfile = DOCKERFILE.read_bytes()
    programs = suite()
    inputs = inputs_hash(dockerfile, foundation, wheels, programs, more)
    image_id = building.labelled(client, name, INPUTS_LABEL, inputs)
    rebuilt = image_id is None
    if image_id is None:
        progress(f"image: building {name} on {foundation.reference}")
        options = build_options(name, mpi, foundation, wheels, inputs, revision(), torch)
        files = context(DOCKERFILE, wheels.files, programs, more.files)
        built = building.build(client, options, files, LOG)
        remove_superseded(client, mpi)
        image_id = str(client.images.get(built).id)
    progress(f"image: {name} {'built' if rebuilt else 'is up to date'}")
    return Image(
        name,
        image_id,
        foundation.reference,
        foundation.python,
        mpi,
        inputs,
        rebuilt,
        foundation.id,
        dockerfile.decode(),
        (*wheels.wheels, *more.wheels),
        foundation.digest,
    )


def variant(mpi: str, torch: bool) -> str:
    """What distinguishes images of a checkout."""
    return f"{mpi}-torch" if torch else mpi


def tag(variant: str) -> str:
    """The name of an image, built or not."""
    return f"hbmcomm:{variant}"


def build_options(
    tag: str,
    mpi: str,
    base: Base,
    wheels: Wheelhouse,
    inputs: str,
    git_revision: str,
    torch: bool = False,
) -> dict[str, Any]:
    """The arguments of the engine's build, except for the context."""
    return {
        "tag": tag,
        "target": "image-torch" if torch else "image",
        "buildargs": {"BASE": base.digest or base.id}  # a name may be another image's by now
        | ({"EXTENSIONS": TORCH_VARIABLES["TORCH_EXTENSIONS_DIR"]} if torch else {}),
        "labels": {
            "org.opencontainers.image.revision": git_revision,
            "hbmcomm.wheelhouse": wheels.hash,
            INPUTS_LABEL: inputs,
            CHECKOUT_LABEL: checkout(),
            MPI_LABEL: mpi,
            "hbmcomm.python": base.python,
            "hbmcomm.base": base.reference,
            "hbmcomm.base.digest": base.digest,
        },
        "network_mode": "host",  # apt reaches the mirror as the host does
    }


def suite(root: Path = ROOT) -> list[tuple[str, Path]]:
    """Programs of ranks and the mark of a checkout, each with its name in the build context."""
    paths = [root / "pyproject.toml", *sorted((root / "experiments").rglob("*"))]
    return [
        (f"suite/{path.relative_to(root)}", path)
        for path in paths
        if path.is_file() and path.parent.name != "__pycache__"
    ]


def context(
    dockerfile: Path,
    wheels: Iterable[Path],
    suite: Iterable[tuple[str, Path]],
    torch: Iterable[Path] = (),
) -> list[tuple[str, Path]]:
    """All files of the build, wheels of torch included, each with its name in the build context."""
    return [
        ("Dockerfile", dockerfile),
        *((f"wheelhouse/{wheel.name}", wheel) for wheel in wheels),
        *((f"torch/{wheel.name}", wheel) for wheel in torch),
        *suite,
    ]


def inputs_hash(
    dockerfile: bytes,
    base: Base,
    wheels: Wheelhouse,
    suite: Iterable[tuple[str, Path]],
    torch: Wheelhouse = NO_WHEELS,
) -> str:
    """Changes exactly when the image would."""
    words = f"{base.id} {base.reference} {wheels.hash}{torch.hash}"
    return digest(dockerfile + words.encode(), suite)


def checkout(root: Path = ROOT) -> str:
    """Identifies this checkout's images among those of others, which share engine and name."""
    return hashlib.sha256(str(root).encode()).hexdigest()[:12]


def remove_superseded(client: docker.DockerClient, mpi: str) -> None:
    """Remove the nameless images that a new one for an MPI leaves behind.

    Layers of the stage `compiled` take minutes: young ones stay for the next build.
    Young ones of other checkouts stay, and so do those for other MPIs: a campaign may run them
    though another checkout has taken their name.
    """
    ours = [f"{CHECKOUT_LABEL}={checkout()}", f"{MPI_LABEL}={mpi}"]
    wanted: list[dict[str, Any]] = [
        *({"label": f"{STAGE_LABEL}={stage}"} for stage in ("base", "system", "packages")),
        {"label": ours},
        {"label": STAGE_LABEL, "until": OTHERS_KEPT},
    ]
    for filters in wanted:
        client.images.prune(filters={"dangling": True, **filters})


def revision(root: Path = ROOT) -> str:
    """The commit that is checked out, "-dirty" when the tree differs from it; or "unknown"."""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        done = captured(command)
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def in_history(revision: str, root: Path = ROOT) -> bool:
    """Whether the commit that is checked out is `revision`, or comes after it."""
    command = ["git", "-C", str(root), "merge-base", "--is-ancestor", revision, "HEAD"]
    try:
        return captured(command).returncode == 0
    except OSError:
        return False
