"""What a catalogue file may say, and how a mistake in one is answered."""

import itertools
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.catalogue import spec
from experiments.model import quantities
from experiments.model.arms import arms
from experiments.model.environment import BARE_HOST, DOCKER, ENVIRONMENTS, EnvironmentId
from experiments.model.errors import SpecError
from experiments.model.experiment import KINDS, Experiment
from experiments.model.launch import OPERATIONS
from tests.refusals import refusal

LEAST = {"name": "x", "title": "t", "question": "q"}


def test_every_file_of_the_catalogue_is_valid() -> None:
    for name in spec.names():
        asked = spec.load(name)
        assert asked.name == name
        assert Experiment.from_dict(asked.to_dict(), "stored") == asked, name


def test_a_name_is_unique_in_all_folders_of_the_catalogue() -> None:
    files = [path.stem for path in spec.CATALOGUE.rglob("*.toml")]
    assert sorted(files) == spec.names()


def test_the_quick_campaign_is_what_the_paper_task_promises() -> None:
    quick = spec.load("quick")
    assert quick.launches.environments == (BARE_HOST, EnvironmentId("userland"), DOCKER)
    assert quick.launches.blocks == 10
    assert quick.launches.aa_pair
    assert quick.factors.sizes[0] == 2**10
    assert quick.factors.sizes[-1] == 2**22
    assert quick.factors.transports == ("direct", "mpi", "pickle")


def test_torch_is_needed_where_a_contender_that_takes_part_needs_it() -> None:
    """gRPC comes with torch."""
    for name in ("parameter_server", "regions", "fusion", "fusion_step_device"):
        assert spec.load(name).uses_torch, name
    for name in ("parameter_server_networks", "daso"):
        assert not spec.load(name).uses_torch, name


def test_the_paper_campaign_has_the_papers_factors() -> None:
    paper = spec.load("paper")
    assert set(paper.factors.operations) == {"bcast", "gather", "allreduce"}
    assert paper.launches.ranks == (2, 4, 8, 16)
    assert {"regular", "hbw"} <= set(paper.factors.kinds)


def test_torch_is_needed_where_environments_measure_its_groups() -> None:
    for transports, level, uses in (
        (["direct", "gloo"], "environments", True),
        (["torch"], "environments", True),
        (["direct", "mpi"], "environments", False),
        (["direct", "torch"], "mpis", False),
    ):
        values = {"factors": {"transports": transports}, "launches": {"arms": level}}
        assert Experiment.from_dict(LEAST | values, "mine.toml").uses_torch == uses, values


def test_a_mistake_names_file_key_and_nearest_valid_name() -> None:
    mistakes: list[tuple[dict[str, Any], list[str]]] = [
        ({"factors": {"kind": ["hbw"]}}, ["unknown key 'kind'", "'kinds'", "[factors]"]),
        ({"factors": {"kinds": ["hwb"]}}, ["unknown kinds 'hwb'", "'hbw'"]),
        ({"factors": {"operations": ["bcsat"]}}, ["'bcsat'", "did you mean 'Bcast'"]),
        ({"factors": {"dtype": "flaot32"}}, ["'flaot32'", "did you mean 'float32'"]),
        ({"factors": {"transports": "mpi"}}, ["transports", "must be a list"]),
        (
            {"factors": {"transports": ["direct-again"]}},
            ["Known: direct, hierarchical, mpi, pickle, gloo, torch"],
        ),
        ({"factors": {"sizes": "1XB:1MiB"}}, ["'1XB'", "KiB"]),
        ({"factors": {"sizes": 7}}, ["sizes 7", "list"]),
        ({"factors": {"sizes": []}}, ["sizes []", "list"]),
        ({"factors": {"sizes": [6]}}, ["sizes [6]", "4 bytes"]),
        ({"factors": {"largest": {"pickel": "4MiB"}}}, ["transport 'pickel'", "[largest]"]),
        ({"factors": {"largest": {"mpi": "4B"}}}, ["'4B' leaves mpi none of the sizes"]),
        ({"factors": {"largest": {"mpi": True}}}, ["largest True leaves mpi none"]),
        ({"factors": {"largest": "4MiB"}}, ["largest '4MiB'", "must be a table"]),
        ({"launches": {"environments": ["dokcer"]}}, ["'dokcer'", "did you mean 'docker'"]),
        ({"launches": {"ranks": [0]}}, ["ranks [0]", "from 1 up"]),
        ({"launches": {"ranks": 4}}, ["ranks 4", "list"]),
        ({"launches": {"blocks": 0}}, ["blocks 0", "1 to 10000"]),
        ({"launches": {"aa_pair": "yes"}}, ["aa_pair 'yes'", "true or false"]),
        ({"measurement": {"time_cap": -1}}, ["time_cap -1", "more than 0"]),
        ({"measurement": {"min_iterations": 9, "max_iterations": 3}}, ["min_iterations 9"]),
        ({"launchs": {}}, ["unknown key 'launchs'", "did you mean 'launches'"]),
        ({"launches": 3}, ["launches must be a table"]),
    ]
    for values, shown in mistakes:
        answer = refusal(SpecError, Experiment.from_dict, LEAST | values, "mine.toml")
        assert "mine.toml" in answer or "sizes" in str(values), values
        assert [words for words in shown if words not in answer] == [], answer or values


def test_a_name_that_no_experiment_resembles_gets_no_suggestion() -> None:
    for name, shown in {
        "none.toml": "experiment none.toml: no such file",
        "allreduce": "'allreduce': that is an operation; measure it with --ops allreduce",
        "Allreduce": "--ops Allreduce",
        "zebra": "unknown experiment 'zebra'; Known: ",
    }.items():
        answer = refusal(SpecError, spec.load, name)
        assert shown in answer and "did you mean" not in answer, name


def test_names_are_read_in_any_case_and_operations_as_mpi4py_spells_them_too() -> None:
    asked = {"operations": ["Allreduce", "BCAST", "bcast"], "kinds": ["HBW"], "dtype": "Float64"}
    factors = Experiment.from_dict(LEAST | {"factors": asked}, "mine.toml").factors
    assert factors.operations == ("allreduce", "bcast")
    assert (factors.kinds, factors.dtype) == (("hbw",), "float64")


def test_an_experiment_that_names_no_kind_measures_ordinary_memory() -> None:
    assert Experiment.from_dict(LEAST, "mine.toml").factors.kinds == ("regular",)


def test_flags_choose_operations_and_kinds() -> None:
    asked = spec.restrict(spec.load("quick"), operations="Allreduce, bcast", kinds="regular")
    assert asked.factors.operations == ("allreduce", "bcast")
    assert asked.factors.kinds == ("regular",)
    every = spec.restrict(spec.load("quick"), operations="all", kinds="all").factors
    assert (every.operations, every.kinds) == (OPERATIONS, KINDS)


def test_a_flag_of_containers_is_refused_where_no_engine_runs_one() -> None:
    for flag in ("profiles", "layouts"):
        every = {"environments": "host", flag: "all"}
        answer = refusal(SpecError, spec.restrict, spec.load("docker"), **every)
        assert re.search(f"--{flag} all is for containers of an engine.* host: drop", answer), flag


def test_a_user_namespace_is_for_podman_and_no_part_of_all() -> None:
    every = spec.restrict(spec.load("docker"), profiles="all").launches.profiles
    assert every == ("default", "tuned", "privileged")
    with pytest.raises(SpecError, match=r"userns-remap.*ask for --env host,podman"):
        spec.restrict(spec.load("docker"), profiles="userns")
    asked = spec.restrict(spec.load("docker"), environments="host,podman", profiles="tuned,userns")
    assert asked.launches.profiles == ("tuned", "userns")


def test_a_file_that_is_not_toml_is_reported_so(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("title = ")
    with pytest.raises(SpecError, match=r"mine.toml is not valid TOML"):
        spec.load(str(path))


def test_a_size_is_read_in_every_spelling() -> None:
    for texts, size in {
        "64 64B 64b": 64,
        "1KiB 1kib 1KB 1kB 1k 1K 1Ki": 2**10,
        "3MiB 3mb 3m": 3 * 2**20,
        "2g 2GB": 2**31,
        "1TiB 1tb 1T": 2**40,
    }.items():
        assert {quantities.parse_size(text) for text in texts.split()} == {size}, texts


@given(st.integers(1, 2**40))
def test_a_size_in_bytes_reads_as_itself(size: int) -> None:
    assert quantities.parse_size(str(size)) == size


@given(st.integers(0, 30), st.integers(0, 20), st.integers(2, 9))
def test_a_range_of_sizes_runs_from_first_by_factor_to_at_most_last(
    exponent: int, more: int, factor: int
) -> None:
    first, last = 2**exponent, 2 ** (exponent + more)
    sizes = quantities.parse_sizes(f"{first}:{last}:{factor}")
    assert sizes[0] == first
    assert sizes[-1] <= last < sizes[-1] * factor
    assert all(b == a * factor for a, b in itertools.pairwise(sizes))


def test_sizes_that_do_not_parse_are_refused() -> None:
    for text in ("", "1XiB", "-1", "1KiB:", "4:2", "1:2:3:4", "1:8:1", "1.5KiB"):
        answer = refusal(SpecError, quantities.parse_sizes, text)
        assert "pars" in answer or "smaller first" in answer, text


def test_flags_take_the_place_of_what_the_file_says() -> None:
    asked = spec.restrict(
        spec.load("docker"), environments="host", ranks="2,3", sizes="1KiB,2KiB", blocks=1
    )
    assert asked.launches.environments == (BARE_HOST,)
    assert asked.launches.ranks == (2, 3)
    assert asked.factors.sizes == (1024, 2048)
    assert asked.launches.blocks == 1
    assert asked.factors.transports == spec.load("docker").factors.transports


def test_a_transport_may_stop_at_a_size_of_its_own() -> None:
    limited = Experiment.from_dict(LEAST | {"factors": {"largest": {"mpi": "1MiB"}}}, "mine.toml")
    assert limited.factors.largest == {"mpi": 2**20}


def test_sizes_that_a_user_asks_for_are_measured_with_every_transport() -> None:
    assert spec.load("quick").factors.largest
    assert not spec.restrict(spec.load("quick"), sizes="16MiB").factors.largest


def test_more_ranks_than_the_cores_can_take_turns_on_are_refused() -> None:
    quantities.check_rank_counts([2, 17], cores=3)
    with pytest.raises(SpecError, match="17 ranks were asked for; this machine has 2 cores"):
        quantities.check_rank_counts([2, 17], cores=2)
    with pytest.raises(SpecError, match="33 ranks were asked for; plain has 4 cores"):
        quantities.check_rank_counts([33], 4, "plain")


def test_an_emulated_machine_is_named_behind_its_way() -> None:
    asked = spec.restrict(spec.load("quick"), environments="vm:plain,vm-docker:plain")
    bare, docker = asked.launches.environments
    assert (str(bare), str(docker)) == ("vm:plain", "vm-docker:plain")
    assert asked.machine == bare.machine == docker.machine == "plain"
    assert docker.has_engine and not bare.has_engine
    assert Experiment.from_dict(asked.to_dict(), "stored") == asked


def test_emulated_hosts_are_named_with_the_rate_of_their_links() -> None:
    for text, hosts, rate in (
        ("hosts:4", 4, "1gbit"),
        ("hosts:2x100mbit", 2, "100mbit"),
        ("hosts:8x2.5gbit", 8, "2.5gbit"),
    ):
        asked = spec.restrict(spec.load("quick"), environments=text, ranks="8")
        (environment,) = asked.launches.environments
        stored = f"hosts:{hosts}x{rate}"
        assert (environment.hosts, environment.rate, str(environment)) == (hosts, rate, stored)
        assert EnvironmentId.parse(stored) == environment
        assert environment.on_hosts and not (
            environment.is_container or environment.is_emulated or environment.on_cluster
        )


def test_ranks_of_emulated_hosts_can_be_in_a_container() -> None:
    text = "hosts:2x100mbit,hosts-charliecloud:2x100mbit"
    asked = spec.restrict(spec.load("quick"), environments=text, ranks="4")
    bare, contained = asked.launches.environments
    assert (bare.container, contained.container) == ("", "charliecloud")
    assert contained.on_hosts and contained.is_container and not contained.has_engine
    assert (contained.hosts, contained.rate) == (bare.hosts, bare.rate) == (2, "100mbit")
    assert Experiment.from_dict(asked.to_dict(), "stored") == asked
    assert [arm.name for arm in arms(asked.launches, "openmpi")] == [
        "host",
        "charliecloud",
        "host-again",
    ]


def test_all_environments_are_those_of_this_machine() -> None:
    everywhere = spec.restrict(spec.load("quick"), environments="all")
    assert everywhere.launches.environments == ENVIRONMENTS


def test_layouts_matter_to_containers_alone() -> None:
    asked = spec.restrict(spec.load("docker"), environments="vm:plain", mpis="openmpi")
    assert len(asked.launches.layouts) == 3
    assert asked.launches.environments == (EnvironmentId("vm", "plain"),)


def test_what_a_campaign_cannot_run_is_refused_with_the_reason() -> None:
    refused: list[tuple[str, dict[str, Any], str]] = [
        ("hots", {}, "unknown environments 'hots'; did you mean 'host'"),
        ("host", {"ranks": "two"}, "ranks 'two' do not parse"),
        ("host", {"nodes": 2}, "2 nodes were asked for, and host has one"),
        # one set of emulated hosts
        ("hosts", {}, "hosts does not say how many emulated hosts: write hosts:4x100"),
        ("hosts:many", {}, "hosts:many does not say how many"),
        ("hosts:2x1gb", {}, "hosts:2x1gb: rate '1gb' does not parse"),
        ("hosts:101", {}, "101 hosts were asked for; there can be 1 to 100"),
        ("hosts-docker:2", {}, "they have charliecloud, apptainer: write hosts-"),
        ("hosts-charliecloud", {}, "does not say how many emulated hosts"),
        (
            "hosts-charliecloud:2",
            {"ranks": "2,3,5"},
            "as many ranks in a container, and the campaign asks for 3, 5 ranks: ask for multiples "
            "of 2 with --ranks, or leave out hosts-charliecloud:2x1gbit",
        ),
        (
            "hosts:2,hosts-charliecloud:3",
            {"ranks": "6"},
            "one set of them, and hosts:2x1gbit, hosts-charliecloud:3x1gbit were asked",
        ),
        ("hosts:2,host", {}, "one set of them, and hosts:2x1gbit, host were asked"),
        ("hosts:2", {"nodes": 2}, "says how many hosts there are: drop --nodes 2"),
        (
            "hosts:4",
            {"ranks": "2,3"},
            "3 ranks leave some of 4 hosts empty in every launch: ask for 4 or more",
        ),
        # a guest
        ("vm:knl-snc4", {}, "'vm:knl-snc4'; did you mean 'vm:knl-snc4-flat'"),
        ("vm", {}, "unknown environments 'vm'; .*'vm:"),
        ("vm-dokcer:plain", {}, "did you mean 'vm-docker:plain'"),
        ("host,vm:plain", {}, "mean nothing beside real ones.*: leave out host$"),
        ("vm:plain,vm:cxl", {}, "one emulated machine, and plain, cxl were asked for"),
        ("vm:plain", {"mpis": "openmpi,mpich"}, "one MPI.*openmpi, mpich.*campaigns of their own"),
        ("vm-docker:plain", {"layouts": "one,isolated"}, "no bridge.*found isolated: .*--layouts"),
        (
            "vm:plain",
            {"external": "IMB", "mpis": "impi"},
            "runs on the host.*vm:plain: leave out IMB$",
        ),
        ("vm-docker:/tmp/own.toml", {}, "is a path: put the file there .* vm-docker:own$"),
        # an allocation
        ("slurm,host", {}, "an allocation has other nodes than this machine"),
        ("slurm", {"nodes": 2, "ranks": "4,5"}, "asks for 5 ranks: ask for multi"),
        ("slurm", {"launcher": "aprun"}, "unknown launcher 'aprun'"),
    ]
    for environments, flags, message in refused:
        asked = {"environments": environments, **flags}
        answer = refusal(SpecError, spec.restrict, spec.load("quick"), **asked)
        assert re.search(message, answer), asked


def test_a_file_without_bounds_is_one_message(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    for text, message in (
        ("a = " + "[" * 5000, "more than 8 tables or lists within each other"),
        ("a = " + "[" * 20 + "]" * 20, "more than 8 tables or lists within each other"),
        ("seed = " + "9" * 5000, "is not valid TOML"),
        (
            "[launches]\nblocks = 100_000_000",
            "blocks 100000000 must be a whole number",
        ),
        (f'[factors]\nsizes = "{"9" * 5000}"', "does not parse"),
        ('[factors]\nsizes = "1:8:²"', "do not parse"),
        (f'[launches]\nenvironments = ["hosts:{"9" * 5000}x1mbit"]', "does not say how many"),
        ('name = "x\\n#SBATCH --wrap\\ntouch y"', "must be a name of letters, digits"),
        ('name = "../../x"', "must be a name of letters, digits"),
        ('name = ".x"', "must be a name of letters, digits"),
        ('title = "\\u001b[31m"', "must be a line of text"),
    ):
        title = "" if text.startswith("title") else "title = 't'"
        path.write_text(f"{title}\nquestion = 'q'\n{text}\n")
        answer = refusal(SpecError, spec.load, str(path))
        assert re.search(rf"^mine\.toml.*{message}", answer), text[:80]


def test_an_experiment_is_not_read_from_a_pipe_or_a_device(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        with pytest.raises(SpecError):
            spec.load(str(tmp_path / f"{name}.toml"))
