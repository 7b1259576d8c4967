"""Files under docker/ are read by an engine and by sh, never imported."""

import re

import pytest

from experiments.environments.profiles import CONTAINER_USER
from experiments.model.checkout import ROOT

DOCKER = ROOT / "docker"
DOCKERFILE = (DOCKER / "Dockerfile").read_text()


def test_no_python_lies_there_to_hide_the_docker_sdk():
    assert not list(DOCKER.rglob("*.py"))


def test_the_import_of_docker_is_the_sdk():
    import docker

    assert docker.__file__ is not None
    assert "site-packages" in docker.__file__


@pytest.mark.parametrize("newer", ["--mount", "# syntax", "<<", "--link", "--chmod"])
def test_the_dockerfile_builds_with_the_classic_builder(newer):
    assert newer not in DOCKERFILE


def test_the_dockerfile_names_no_host():
    assert not re.search(r"https?://", DOCKERFILE)


def test_the_last_user_is_nobody_of_a_host():
    last = re.findall(r"^USER (.*)$", DOCKERFILE, re.MULTILINE)[-1]
    assert last == f"{CONTAINER_USER}:{CONTAINER_USER}"


def test_every_recipe_has_the_same_user():
    for recipe in (DOCKERFILE, (DOCKER / "guest/Dockerfile").read_text()):
        assert f"useradd --uid {CONTAINER_USER} --gid {CONTAINER_USER} " in recipe
    assert f"chgrp {CONTAINER_USER} /dev/dax*" in (DOCKER / "guest/init").read_text()
