"""The image as a folder: complete or not there, and remade when the image is another one."""

import io
import os
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import requests

from experiments.model.errors import Missing
from experiments.provision import image_files
from experiments.provision.image import Image
from tests.second_user import SecondUser

IMAGE = Image("hbmcomm:openmpi", "sha256:1", "base", "3.11", "openmpi", "inputs", False)


def archive(**files: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name.replace("_", "/"))
            member.size, member.uid = len(text), 4321
            tar.addfile(member, io.BytesIO(text.encode()))
    return packed.getvalue()


def hostile() -> bytes:
    """Set-user-ID and set-group-ID programs, a device that everyone may read, and a file."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, mode in (("bin/su", 0o4755), ("bin/wall", 0o2755), ("data", 0o666)):
            member = tarfile.TarInfo(name)
            member.mode = mode
            tar.addfile(member)
        if os.geteuid() == 0:  # nobody else makes one, and tar says so
            device = tarfile.TarInfo("srv/memory")
            device.type, device.mode = tarfile.CHRTYPE, 0o666
            device.devmajor, device.devminor = 1, 3
            tar.addfile(device)
    return packed.getvalue()


class Engine:
    """As much of the SDK as an export asks for."""

    def __init__(self, **images: bytes) -> None:
        self._images, self.exports, self.containers_left = images, 0, 0
        self.failure: Exception | None = None

    @property
    def containers(self) -> "Engine":
        return self

    def list(self, **asked: object) -> list["Engine"]:
        return []

    def create(self, image: str, labels: dict[str, str]) -> "Engine":
        self.containers_left += 1
        self._asked = image
        return self

    def export(self) -> Iterator[bytes]:
        self.exports += 1
        packed = self._images[self._asked.partition(":")[2].replace("1", "one")]
        yield packed[:700]
        if self.failure:
            raise self.failure
        yield packed[700:]

    def remove(self, force: bool) -> None:
        self.containers_left -= 1


@pytest.fixture
def engine() -> Engine:
    return Engine(
        one=archive(etc_name="first", dev_null="a device", usr_dev_null="a file"),
        two=archive(b="second"),
    )


@pytest.fixture(autouse=True)
def trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_files, "TREES", tmp_path)


def ensure(engine: Engine, image: Image) -> Path:
    lines: list[str] = []
    return image_files.ensure(engine, image, lines.append)  # type: ignore[arg-type]


def test_the_folder_holds_the_image_and_a_place_for_the_launch(engine: Engine) -> None:
    tree = ensure(engine, IMAGE)
    assert tree == image_files.folder("openmpi")
    assert (tree / "etc/name").read_text() == "first"
    assert (tree / "launch").is_dir()
    assert not (tree / "dev/null").exists()
    assert (tree / "usr/dev/null").read_text() == "a file"
    assert engine.containers_left == 0


def test_it_is_made_once_and_again_for_another_image(engine: Engine, tmp_path: Path) -> None:
    ensure(engine, IMAGE)
    tree = ensure(engine, IMAGE)
    assert engine.exports == 1
    assert ensure(engine, replace(IMAGE, id="sha256:two")) == tree
    assert (tree / "b").read_text() == "second"
    assert not (tree / "etc").exists()
    assert {path.name for path in tmp_path.iterdir()} == {".lock", "openmpi", "openmpi.json"}


def test_without_an_engine_the_image_of_a_folder_is_known(engine: Engine) -> None:
    with pytest.raises(Missing, match="openmpi is not unpacked in"):
        image_files.recall("openmpi")
    image = replace(IMAGE, wheels=(Path("a.whl"),))
    ensure(engine, image)
    assert image_files.recall("openmpi") == image


def test_an_export_that_breaks_off_leaves_what_was_there(engine: Engine) -> None:
    tree = ensure(engine, IMAGE)
    engine.failure = requests.ConnectionError("gone")
    with pytest.raises(Missing, match="gone; see that the engine runs"):
        ensure(engine, replace(IMAGE, id="sha256:two"))
    assert (tree / "etc/name").read_text() == "first"
    assert engine.containers_left == 0
    engine.failure = None
    assert ensure(engine, IMAGE) == tree
    assert engine.exports == 2


def test_a_half_made_folder_of_a_killed_driver_is_replaced(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "openmpi.incoming/etc").mkdir(parents=True)
    (tmp_path / "openmpi").mkdir()  # without its stamp: killed between two steps
    assert (ensure(engine, IMAGE) / "etc/name").read_text() == "first"


def test_an_image_brings_no_set_user_id_file_and_no_device(tmp_path: Path) -> None:
    image = replace(IMAGE, id="sha256:hostile")
    tree = ensure(Engine(hostile=hostile()), image)
    modes = {path.relative_to(tree): path.lstat().st_mode for path in tree.rglob("*")}
    files = {str(path): stat.S_IMODE(mode) for path, mode in modes.items() if stat.S_ISREG(mode)}
    assert files == {"bin/su": 0o755, "bin/wall": 0o755, "data": 0o644}
    assert not [mode for mode in modes.values() if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))]


def test_another_user_reaches_no_unpacked_file(
    engine: Engine, second_user: SecondUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory() as place:  # tmp_path is root's alone
        Path(place).chmod(0o755)
        monkeypatch.setattr(image_files, "TREES", Path(place) / "unpacked")
        file = ensure(engine, IMAGE) / "etc/name"
        assert second_user.run(["cat", file]).stderr.endswith("Permission denied\n")
