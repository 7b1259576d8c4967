import shutil

import pytest

from experiments.provision import distro_releases

pytestmark = pytest.mark.skipif(shutil.which("apt-get") is None, reason="this machine has no apt")


@pytest.fixture
def etc(tmp_path):
    (tmp_path / "sources.list.d").mkdir()
    return tmp_path


def test_a_machine_without_sources_has_no_mirror(tmp_path):
    assert distro_releases.mirror("bookworm", tmp_path) is None


def test_a_machine_without_apt_has_no_mirror(etc, monkeypatch):
    (etc / "sources.list").write_text("deb http://a.example/debian bookworm main\n")
    monkeypatch.setenv("PATH", str(etc))
    assert distro_releases.mirror("bookworm", etc) is None


def test_one_line_sources_may_carry_options_and_comments_and_need_main(etc):
    options = (
        "# deb http://off.example/debian bookworm main\n"
        "deb cdrom:[Debian]/ bookworm main\n"
        "deb-src http://sources.example/debian bookworm main\n"
        "deb [arch=amd64 signed-by=/k] http://mirror.example/debian/ bookworm contrib main #x"
    )
    for text, mirror in (
        (options, "http://mirror.example/debian"),
        ("deb [trusted=yes] file:/srv/debian bookworm main", "file:/srv/debian"),
        ("deb http://a.example/tools bookworm stable", None),
    ):
        (etc / "sources.list").write_text(f"{text}\n")
        assert distro_releases.mirror("bookworm", etc) == mirror


def test_deb822_names_every_suite_of_every_uri(etc):
    (etc / "sources.list.d" / "debian.sources").write_text(
        "Types: deb deb-src\n"
        "# a snapshot\n"
        "URIs: http://a.example/debian\n"
        " http://b.example/debian\n"
        "Suites: trixie trixie-updates\n"
        "Components: main\n"
        "\n"
        "Types: deb\n"
        "URIs: http://security.example/debian-security\n"
        "Suites: trixie-security\n"
        "Components: main\n"
    )
    urls = [distro_releases.mirror(f"trixie{part}", etc) for part in ("", "-updates", "-security")]
    first, security = "http://a.example/debian", "http://security.example/debian-security"
    assert urls == [first, first, security]


def test_a_paragraph_that_is_off_or_only_sources_does_not_count(etc):
    fields = {"Types": "deb", "URIs": "http://a.example/debian", "Suites": "trixie"}
    for change in ({"Enabled": "no"}, {"Enabled": "False"}, {"Types": "deb-src"}):
        every = fields | {"Components": "main"} | change
        text = "".join(f"{name}: {value}\n" for name, value in every.items())
        (etc / "sources.list.d" / "debian.sources").write_text(text)
        assert distro_releases.mirror("trixie", etc) is None, change


def test_files_with_another_ending_are_not_apts(etc):
    line = "deb http://a.example/debian bookworm main\n"
    (etc / "sources.list.d" / "old.list.save").write_text(line)
    assert distro_releases.mirror("bookworm", etc) is None
    (etc / "sources.list.d" / "new.list").write_text(line)
    assert distro_releases.mirror("bookworm", etc) == "http://a.example/debian"


def test_the_suite_has_the_hosts_python_where_any_has():
    for python, image in (
        ("3.11", "debian:bookworm-slim"),
        ("3.12", "ubuntu:24.04"),
        ("3.13", "debian:trixie-slim"),
        ("3.14", "debian:bookworm-slim"),
    ):
        assert distro_releases.with_python(python).image == image


def test_guests_are_made_of_debian_alone():
    makers = {suite.name for suite in distro_releases.SUITES if suite.makes_guests}
    assert makers == {"bookworm", "trixie"}
    assert distro_releases.GUESTS.makes_guests


def test_an_unknown_suite_is_none():
    assert distro_releases.named("potato") is None
    assert distro_releases.named("noble") == distro_releases.with_python("3.12")
