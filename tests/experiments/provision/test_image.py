import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path

import docker
import pytest

from experiments.environments.profiles import CONTAINER_USER
from experiments.provision import base_image, building
from experiments.provision import image as image_provision
from experiments.provision.base_image import Base
from experiments.provision.building import ImageBuildFailed
from experiments.provision.engine import EngineMissing
from experiments.provision.image import Image
from experiments.provision.wheelhouse import Wheelhouse

BASE = Base("debian:bookworm-slim", "sha256:base", "3.11", "debian@sha256:served")
WHEELS = Wheelhouse(Path("/w"), (Path("/w/a-1-py3-none-any.whl"), Path("/w/b-2.whl")), "wheels")
RANK = (
    "from mpi4py import MPI; import numpy; import hbmcomm, experiments.programs.harness; "
    "import hbmcomm._native._core; import ctypes; ctypes.CDLL('libmemkind.so.0'); "
    "a = numpy.ones(1 << 20); MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, a); print('sum', a[0])"
)
LEAST_PRIVILEGE = {
    "read_only": True,
    "tmpfs": {"/tmp": ""},
    "user": "4321:4321",
    "network_mode": "none",
    "cap_drop": ["ALL"],
    "cap_add": ["SYS_NICE"],
    "security_opt": ["no-new-privileges"],
}


def test_the_build_is_asked_for_exactly_this():
    asked = ("hbmcomm:openmpi", "openmpi", BASE, WHEELS, "inputs", "0123abc-dirty")
    options = image_provision.build_options(*asked, False)
    assert options == {
        "tag": "hbmcomm:openmpi",
        "target": "image",
        "buildargs": {"BASE": "debian@sha256:served"},
        "labels": {
            "org.opencontainers.image.revision": "0123abc-dirty",
            "hbmcomm.wheelhouse": "wheels",
            "hbmcomm.inputs": "inputs",
            "hbmcomm.checkout": image_provision.checkout(),
            "hbmcomm.mpi": "openmpi",
            "hbmcomm.python": "3.11",
            "hbmcomm.base": "debian:bookworm-slim",
            "hbmcomm.base.digest": "debian@sha256:served",
        },
        "network_mode": "host",
    }
    arguments = options["buildargs"] | {"EXTENSIONS": "/opt/hbmcomm/extensions"}
    of_torch = options | {"target": "image-torch", "buildargs": arguments}
    assert image_provision.build_options(*asked, True) == of_torch
    made_here = replace(BASE, digest="")
    options = image_provision.build_options("hbmcomm:impi", "impi", made_here, WHEELS, "inputs", "")
    assert options["buildargs"]["BASE"] == "sha256:base", "no registry serves it"


def test_a_base_is_pinned_by_the_digest_of_its_own_repository():
    for reference, served, digest in (
        ("debian:bookworm-slim", ["mirror/debian@sha256:1", "debian@sha256:2"], "debian@sha256:2"),
        ("debian", ["docker.example.org/library/debian@sha256:1"], "served"),
        ("host:5000/base", ["host:5000/base@sha256:1"], "served"),
        ("base@sha256:2", ["base@sha256:1", "base@sha256:2"], "base@sha256:2"),
        ("hbmcomm-base:bookworm", [], ""),
    ):
        wanted = served[0] if digest == "served" else digest
        assert base_image.digest_of(reference, served) == wanted


def test_each_checkout_knows_its_own_images() -> None:
    assert image_provision.checkout(Path("/a")) == image_provision.checkout(Path("/a"))
    assert image_provision.checkout(Path("/a")) != image_provision.checkout(Path("/b"))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What the image takes of a checkout, and files beside it that the image does not take."""
    for name in ("pyproject.toml", "README.md", "experiments/rank.py", "plots/draw.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "experiments" / "__pycache__").mkdir()
    (tmp_path / "experiments" / "__pycache__" / "rank.pyc").write_text("compiled")
    return tmp_path


def test_the_context_is_the_dockerfile_the_wheels_and_the_programs_of_ranks(checkout: Path) -> None:
    suite = image_provision.suite(checkout)
    assert image_provision.context(Path("/d/Dockerfile"), WHEELS.wheels, suite) == [
        ("Dockerfile", Path("/d/Dockerfile")),
        ("wheelhouse/a-1-py3-none-any.whl", Path("/w/a-1-py3-none-any.whl")),
        ("wheelhouse/b-2.whl", Path("/w/b-2.whl")),
        ("suite/pyproject.toml", checkout / "pyproject.toml"),
        ("suite/experiments/rank.py", checkout / "experiments" / "rank.py"),
    ]
    wheel = Path("/t/torch-2.whl")
    more = image_provision.context(Path("/d/Dockerfile"), WHEELS.wheels, suite, [wheel])
    assert ("torch/torch-2.whl", wheel) in more


def test_an_image_with_torch_has_a_name_of_its_own():
    for torch, tag in ((False, "hbmcomm:mpich"), (True, "hbmcomm:mpich-torch")):
        variant = image_provision.variant("mpich", torch)
        assert image_provision.tag(variant) == tag
        assert Image(tag, "id", "base", "3.11", "mpich", "inputs", False).variant == variant


def test_a_packed_context_can_be_read_by_every_user_of_the_image(tmp_path: Path) -> None:
    modes = {"private": 0o600, "public": 0o664, "program": 0o700}
    for name, mode in modes.items():
        (tmp_path / name).write_text(name)
        (tmp_path / name).chmod(mode)
    with (tmp_path / "context.tar").open("w+b") as archive:
        building.pack([(f"in/{name}", tmp_path / name) for name in modes], archive)
        with tarfile.open(fileobj=archive) as tar:
            packed = {entry.name: entry.mode for entry in tar}
            content = tar.extractfile("in/private")
            assert content is not None
            assert content.read() == b"private"
    assert packed == {"in/private": 0o644, "in/public": 0o644, "in/program": 0o755}


def test_whatever_goes_into_the_image_changes_its_inputs(checkout: Path) -> None:
    def inputs(
        *torch: Wheelhouse, dockerfile: bytes = b"FROM x", base: Base = BASE, wheels: str = "wheels"
    ) -> str:
        house, suite = replace(WHEELS, hash=wheels), image_provision.suite(checkout)
        return image_provision.inputs_hash(dockerfile, base, house, suite, *torch)

    first = inputs()
    assert inputs() == first
    others = [
        inputs(dockerfile=b"FROM y"),
        inputs(base=replace(BASE, id="sha256:new")),
        inputs(base=replace(BASE, reference="ubuntu")),
        inputs(wheels="new"),
        inputs(WHEELS),
    ]
    (checkout / "plots" / "draw.py").write_text("changed")
    assert inputs() == first
    (checkout / "experiments" / "rank.py").write_text("changed")
    others.append(inputs())
    (checkout / "experiments" / "rank.py").rename(checkout / "experiments" / "harness.py")
    others.append(inputs())
    assert len({first, *others}) == 8


def test_a_commit_that_was_removed_is_not_in_the_history(tmp_path):
    assert image_provision.revision(tmp_path) == "unknown"

    def git(*words):
        author = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        command = ["git", "-C", tmp_path, *author, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "--message", "first")
    first = git("rev-parse", "HEAD")
    git("commit", "--quiet", "--allow-empty", "--message", "second")
    assert image_provision.in_history(first, tmp_path)
    second = git("rev-parse", "HEAD")
    git("reset", "--quiet", "--hard", first)
    assert image_provision.in_history(first, tmp_path)
    assert not image_provision.in_history(second, tmp_path)
    assert not image_provision.in_history("0" * 40, tmp_path)


def test_an_engine_that_is_gone_is_said_so():
    gone = docker.DockerClient(base_url="unix:///nowhere/docker.sock", version="1.41")
    with pytest.raises(EngineMissing, match=r"engine failed.*\./inv doctor"):
        image_provision.ensure(gone)


@pytest.mark.container
def test_an_image_whose_inputs_are_the_same_is_not_built_again(engine, image):
    again = image_provision.ensure(engine)
    assert not again.rebuilt
    assert replace(image, rebuilt=False) == again


@pytest.mark.container
def test_the_image_says_what_went_into_it_and_runs_as_nobody_important(engine, image):
    docker_image = engine.images.get(image.tag)
    assert docker_image.labels["hbmcomm.inputs"] == image.inputs
    assert docker_image.labels["hbmcomm.mpi"] == "openmpi"
    assert docker_image.labels["org.opencontainers.image.revision"]
    assert len(docker_image.labels["hbmcomm.wheelhouse"]) == 64
    assert docker_image.attrs["Config"]["User"] == f"{CONTAINER_USER}:{CONTAINER_USER}"


@pytest.mark.container
@pytest.mark.ranks
def test_two_ranks_run_with_the_least_privilege_that_places_memory(engine, image):
    output = engine.containers.run(
        image.tag,
        ["mpiexec", "--oversubscribe", "-n", "2", "python", "-c", RANK],
        remove=True,
        **LEAST_PRIVILEGE,
    )
    assert output.decode().split() == ["sum", "2.0"] * 2


@pytest.mark.container
def test_an_image_that_does_not_build_ends_with_the_last_words_of_the_log(
    engine, image, tmp_path, monkeypatch
):
    broken = tmp_path / "Dockerfile"
    broken.write_text("ARG BASE\nFROM ${BASE} AS image\nRUN echo about to fail && exit 7\n")
    monkeypatch.setattr(image_provision, "DOCKERFILE", broken)
    monkeypatch.setattr(image_provision, "LOG", tmp_path / "image.log")
    with pytest.raises(ImageBuildFailed) as failure:
        image_provision.ensure(engine, progress=lambda line: None)
    assert "about to fail" in str(failure.value)
    assert "returned a non-zero code: 7" in str(failure.value)
    assert "about to fail" in (tmp_path / "image.log").read_text()
    assert engine.images.get(image.tag).id == image.id


@pytest.mark.container
def test_a_replaced_image_does_not_pile_up(engine, image, tmp_path, monkeypatch):
    edited = tmp_path / "Dockerfile"
    for number in range(2):
        edited.write_text(
            f"ARG BASE\nFROM ${{BASE}} AS image\nLABEL hbmcomm.stage=image n={number}\n"
        )
        monkeypatch.setattr(image_provision, "DOCKERFILE", edited)
        monkeypatch.setattr(image_provision, "tag", lambda variant: "hbmcomm:test")
        built = image_provision.ensure(engine, progress=lambda line: None)
        assert built.rebuilt
    ours = [f"hbmcomm.checkout={image_provision.checkout()}", "hbmcomm.mpi=openmpi"]
    stages = [f"hbmcomm.stage={stage}" for stage in ("system", "packages")]
    dangling = [
        untagged
        for labels in (ours, *stages)
        for untagged in engine.images.list(filters={"dangling": True, "label": labels})
    ]
    engine.images.remove("hbmcomm:test")
    assert dangling == []
