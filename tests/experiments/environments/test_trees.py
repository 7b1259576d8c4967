"""Charliecloud, Apptainer and chroot for real: the harness over the image's layers or a copy."""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest

from experiments.environments import runtime
from experiments.environments.charliecloud import Charliecloud
from experiments.environments.process import FOLDER
from experiments.environments.runtime import Tree
from experiments.environments.userland import Userland
from experiments.jobs.execute import execute
from experiments.processes import executables
from experiments.processes.tracking import MARK
from experiments.provision import image_files, layers, passthrough
from experiments.provision.image import PREFIX, Image
from experiments.provision.layers import Layers
from tests.experiments.environments.small_launch import small_launch

pytestmark = [pytest.mark.container, pytest.mark.ranks]
EMULATED = {"MEMKIND_HBW_NODES": "0"}


def needs(program: str) -> Callable[..., Any]:
    return pytest.mark.skipif(
        executables.find(program) is None, reason=f"{program} is not installed"
    )


@pytest.fixture(scope="module")
def tree(engine: docker.DockerClient, image: Image) -> Iterator[Path]:
    """The image as a folder."""
    yield image_files.ensure(engine, image, print)


@pytest.fixture(scope="module")
def mounted(engine: docker.DockerClient, image: Image) -> Layers:
    """The image's layers."""
    if not passthrough.is_root():
        pytest.skip("reading the engine's layers needs root")
    return layers.of(engine, image)


def over(tree: Path | Layers, made: type[Tree], root: bool = passthrough.is_root()) -> Any:
    known = PREFIX, passthrough.cores(), passthrough.machine(), EMULATED, root
    if isinstance(tree, Path):
        return made(tree, *known)
    return made(layers.mount_point(), *known, (str(tree.folder), tree.option))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(candidate.name, marks=needs(candidate.program))
        for candidate in runtime.every()
        if candidate.tree
    ],
)
def test_every_operation_is_right_over_the_images_layers(
    mounted: Layers, measured: Callable[..., dict[str, Any]], name: str
) -> None:
    launch = small_launch(name)
    tree = runtime.tree_of(launch.environment)
    assert tree
    result = measured(over(mounted, tree, root=True), launch)
    tried = result["environment"]["datapath"]
    assert tried["uid"] != 0
    assert tried["memfd"] == "works"
    assert result["environment"]["versions"]["python"] != "" and not Path(FOLDER).exists()
    if name == "apptainer":
        return
    assert int(tried["capabilities_effective"], 16) == 0
    assert {tried[way] for way in ("cma", "kcmp")} == {"works"}
    assert tried["seccomp"] == "0"
    pools = [pool for rank in result["ranks"] for pool in rank["pools"]]
    assert {pool["placement_method"] for pool in pools} == {"move_pages"}


@needs("ch-run")
def test_ranks_in_charliecloud_see_the_image_and_the_mark_and_nothing_else(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SECRET", "HOSTNAME", "PYTHONPATH"):
        monkeypatch.setenv(name, "of the host")
    (tmp_path / "given").touch()
    os.chown(tmp_path, *passthrough.owner())
    command = over(tree, Charliecloud).command(small_launch("charliecloud"), tmp_path)
    shown = "env; ls -d /launch/* /work* /home/*; ls /root /tmp; touch /opt/new"
    seen = replace(command, argv=(*command.argv[: command.argv.index("--") + 1], "sh", "-c", shown))
    log = tmp_path / "log"
    execute(seen, log, None, lambda: None)
    text = log.read_text()
    assert f"{MARK}=" in text
    assert "/launch/given" in text
    assert "of the host" not in text
    assert "Read-only file system" in text
    assert "USER=" not in text


def inside(environment: Any, folder: Path, script: str) -> str:
    """What a script prints in place of the ranks."""
    command = environment.command(small_launch("userland"), folder)
    at = next(n for n, word in enumerate(command.argv) if word == f"{PREFIX}/bin/mpiexec")
    log = folder / "log"
    execute(
        replace(command, argv=(*command.argv[:at], "sh", "-c", script)), log, None, lambda: None
    )
    return log.read_text()


@pytest.mark.skipif(not passthrough.is_root(), reason="only root gives ranks another user")
@pytest.mark.parametrize("made", [Userland, pytest.param(Charliecloud, marks=needs("ch-run"))])
def test_roots_ranks_may_do_what_nobody_may(
    mounted: Layers, tmp_path: Path, made: type[Tree]
) -> None:
    os.chown(tmp_path, *passthrough.owner())
    (tmp_path / "secret").write_text("read")
    (tmp_path / "secret").chmod(0o600)
    script = f"touch {FOLDER}/mine; cat {FOLDER}/secret; kill -0 {os.getpid()} && echo killed; "
    script += (
        "grep NoNewPrivs /proc/self/status; awk '$5 == \"/\" { print $6 }' /proc/self/mountinfo"
    )
    shown = inside(over(mounted, made), tmp_path, script)
    assert (tmp_path / "mine").stat().st_uid == passthrough.owner()[0] != 0
    assert "Permission denied" in shown and "read" not in shown.split()
    assert "killed" not in shown
    assert re.search(r"NoNewPrivs:\s1", shown)
    options = shown.splitlines()[-1]
    assert "nosuid" in options and "nodev" in options


def test_every_operation_is_right_over_a_copy_for_a_user_mapped_to_root(
    tree: Path, measured: Callable[..., dict[str, Any]]
) -> None:
    """Root can be that too."""
    result = measured(over(tree, Userland, root=False), small_launch("host"))
    tried = result["environment"]["datapath"]
    assert {tried[way] for way in ("cma", "kcmp", "memfd")} == {"works"}
    assert tried["seccomp"] == "0"
    assert tried["uid"] == 0
