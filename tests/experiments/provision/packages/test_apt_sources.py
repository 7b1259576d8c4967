import pytest

from experiments.provision.packages import apt_sources
from experiments.provision.packages.apt_sources import Source


@pytest.fixture
def etc(tmp_path):
    (tmp_path / "sources.list.d").mkdir()
    return tmp_path


def test_a_machine_without_sources_has_no_mirror(tmp_path):
    assert apt_sources.sources(tmp_path) == ()
    assert apt_sources.mirror("bookworm", tmp_path) is None


def test_one_line_sources_may_carry_options_and_comments(etc):
    (etc / "sources.list").write_text(
        "# deb http://off.example/debian bookworm main\n"
        "deb cdrom:[Debian]/ bookworm main\n"
        "deb-src http://mirror.example/debian bookworm main\n"
        "deb [arch=amd64 signed-by=/k] http://mirror.example/debian/ bookworm main contrib #x\n"
    )
    assert apt_sources.sources(etc)[-1] == Source(
        "http://mirror.example/debian", "bookworm", ("main", "contrib")
    )
    assert apt_sources.mirror("bookworm", etc) == "http://mirror.example/debian"


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
    assert [(source.uri, source.suite) for source in apt_sources.sources(etc)] == [
        ("http://a.example/debian", "trixie"),
        ("http://a.example/debian", "trixie-updates"),
        ("http://b.example/debian", "trixie"),
        ("http://b.example/debian", "trixie-updates"),
        ("http://security.example/debian-security", "trixie-security"),
    ]
    assert apt_sources.mirror("trixie", etc) == "http://a.example/debian"


@pytest.mark.parametrize("field", ["Enabled: no", "enabled: False", "Types: deb-src"])
def test_a_paragraph_that_is_off_or_only_sources_does_not_count(etc, field):
    (etc / "sources.list.d" / "debian.sources").write_text(
        f"Types: deb\nURIs: http://a.example/debian\nSuites: trixie\nComponents: main\n{field}\n"
    )
    assert apt_sources.mirror("trixie", etc) is None


def test_files_with_another_ending_are_not_apts(etc):
    line = "deb http://a.example/debian bookworm main\n"
    (etc / "sources.list.d" / "old.list.save").write_text(line)
    assert apt_sources.sources(etc) == ()
    (etc / "sources.list.d" / "new.list").write_text(line)
    assert len(apt_sources.sources(etc)) == 1


def test_a_suite_without_main_is_not_a_mirror(etc):
    (etc / "sources.list").write_text("deb http://a.example/tools bookworm stable\n")
    assert apt_sources.mirror("bookworm", etc) is None
