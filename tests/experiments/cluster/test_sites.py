"""sites.toml: what it may say, and what a mistake in it is answered with."""

from pathlib import Path

import pytest

from experiments.cluster import sites
from experiments.cluster.sites import Site
from experiments.model.errors import ExperimentsError, SpecError
from tests.refusals import refusal

KNL = """
[knl]
partition = "normal"
constraint = "flat,quadrant"
prepare = ["module load gcc"]
shared = "/scratch/me"
[knl.pmi]
mpich = "pmix"
[knl.images]
apptainer = "/scratch/me/{mpi}.sif"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sites.toml"


def test_without_a_file_a_site_has_no_options(file: Path) -> None:
    assert sites.load("", file) == ("", Site())
    with pytest.raises(ExperimentsError, match=r"'knl' was asked for and .* no .*sites\.toml"):
        sites.load("knl", file)


def test_the_only_site_needs_no_name(file: Path) -> None:
    file.write_text(KNL)
    name, site = sites.load("", file)
    assert (name, site.partition, site.prepare) == ("knl", "normal", ("module load gcc",))
    assert [site.pmi_of(mpi) for mpi in ("openmpi", "mpich", "impi")] == ["pmix", "pmix", "pmi2"]
    assert site.image_of("apptainer", "impi") == Path("/scratch/me/impi.sif")
    assert site.image_of("charliecloud", "impi") is None


def test_of_several_sites_one_must_be_named(file: Path) -> None:
    file.write_text(KNL + '[max]\npartition = "hbm"\n')
    with pytest.raises(ExperimentsError, match="has 2 sites, knl, max; name one with --site"):
        sites.load("", file)
    assert sites.load("max", file)[1].partition == "hbm"
    with pytest.raises(ExperimentsError, match="unknown site 'maxx'; did you mean 'max'"):
        sites.load("maxx", file)


def test_a_mistake_is_named_with_its_file_and_its_site(file: Path) -> None:
    for line, message in (
        ('partitoin = "x"', "unknown key 'partitoin'; did you mean 'partition'"),
        ("nodes = 0", "nodes 0 must be a whole number, 1 or more"),
        ('launcher = "aprun"', "unknown launcher 'aprun'"),
        ('shared = "scratch"', "shared 'scratch' must be an absolute path"),
        ('time = "soon"', "time 'soon' must be minutes, or HOURS:MINUTES:SECONDS"),
        ('[x.pmi]\nmpch = "pmi2"', "unknown key 'mpch'; did you mean 'mpich'"),
        ('[x.images]\ndocker = "a"', "unknown key 'docker'"),
    ):
        file.write_text(f"[x]\n{line}\n")
        answer = refusal(SpecError, sites.load, "", file)
        assert message in answer and f"{file} [x]" in answer, line


def test_times_are_those_of_sbatch(file: Path) -> None:
    for time in ("30", "1:30:00", "2-12:00:00"):
        file.write_text(f'[x]\ntime = "{time}"\n')
        assert sites.load("", file)[1].time == time


def test_the_file_is_in_the_users_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/elsewhere")
    assert sites.path() == Path("/elsewhere/hbmcomm/sites.toml")
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert sites.path() == Path.home() / ".config/hbmcomm/sites.toml"
