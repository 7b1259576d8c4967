import socket

import pytest

from experiments.model.errors import Missing
from experiments.provision import base_image, distro_releases

pytestmark = pytest.mark.container


def test_an_image_that_nobody_has_is_named_with_the_way_out(engine):
    with pytest.raises(Missing, match=r"no-such-image:hbmcomm.*--base bootstrap"):
        base_image.ensure(engine, "no-such-image:hbmcomm", lambda line: None)


def test_a_registry_that_never_answers_is_given_up(engine):
    lines = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        reference = f"127.0.0.1:{silent.getsockname()[1]}/base:latest"
        with pytest.raises(Missing):
            base_image.ensure(engine, reference, lines.append)
    assert lines == [f"base: no registry gives {reference}: no answer in time"]


def test_what_lies_here_is_taken_without_a_word_to_the_registry(engine, image):
    lines = []
    base = base_image.ensure(engine, "auto", lines.append)
    assert base.reference == image.base
    assert lines == []


def test_a_foreign_image_is_asked_for_its_python(engine, image):
    base = base_image.ensure(engine, image.tag, lambda line: None)
    assert base.python == image.python


def test_the_bases_python_is_the_hosts_where_a_suite_has_it(image):
    assert image.python == distro_releases.with_python(distro_releases.host_python()).python
