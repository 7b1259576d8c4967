"""The shell contract: what each task answers, and with which exit code, when asked wrongly.

Tests call invoke's own program in this process, which saves the start of an interpreter for each;
a few start a process, where its environment, its standard streams or its end matter.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from invoke.program import Program

from experiments.catalogue import spec
from experiments.model.environment import machine_names
from experiments.processes.executables import captured

ROOT = Path(__file__).parents[2]
TASKS = (
    *("archive", "bench", "build", "compare", "docs", "doctor", "export", "hosts", "model"),
    *("paper", "plot", "report", "run", "test", "vm", "wheels"),
)
Invoke = Callable[..., "Ended"]


class Ended(NamedTuple):
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


def process(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, with more environment variables."""
    command = [sys.executable, "-m", "invoke", *words]
    return captured(command, cwd=ROOT, env=os.environ | environment, timeout=120)


@pytest.fixture
def invoke(
    handlers: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Invoke:
    """invoke(*words): a command in this process, in the checkout."""
    monkeypatch.chdir(ROOT)

    def run(*words: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["invoke", *words])  # the tasks look for paths there
        code = 0
        try:
            Program(binary_names=["invoke"]).run(sys.argv)
        except SystemExit as ended:
            code = int(ended.code or 0)
        return Ended(code, *capsys.readouterr())

    return run


def test_help_teaches_with_an_example(invoke: Invoke) -> None:
    for task in TASKS:
        ended = invoke(task, "--help")
        assert ended.returncode == 0, task
        assert "Example" in ended.stdout and f"./inv {task}" in ended.stdout, task


def test_help_on_positional_arguments_may_stand_anywhere(invoke: Invoke) -> None:
    several = ("compare -h", "compare one --help", "compare one two --json --help")
    for words in ("--help compare", *several):
        ended = invoke(*words.split())
        assert (ended.returncode, "./inv compare" in ended.stdout) == (0, True), words


def test_lists_show_every_task_experiment_and_machine(invoke: Invoke) -> None:
    listed = invoke("--list").stdout
    assert [task for task in TASKS if task not in listed] == []
    ended = invoke("run", "--list")
    assert ended.returncode == 0
    lines = ended.stdout.splitlines()
    assert all(f"{name}: {spec.load(name).question}" in lines for name in spec.names())
    assert "    host; 2, 4, 8, 16 ranks; 612 cells, 80 launches, up to " in ended.stdout
    machines = [line.split()[0] for line in invoke("vm").stdout.splitlines() if line[0] != " "]
    assert machines == machine_names()


MISTAKES = {
    "model --what-if cray": "--what-if 'cray' is not one of knl, xeon-max, gh200",
    "model --network 1gbit": "--network '1gbit' is not one of 10gbit",
    "model --nodes 0": "--nodes '0' must be a whole number, 1 or more",
    "model ./none.json.xz": "none.json.xz",
    "model docs/data/between_hosts.tar.xz --what-if knl": (
        "their models know no memory and no links but their own; drop --what-if"
    ),
    "run --experiment quik": "unknown experiment 'quik'; did you mean 'quick'?",
    "run --env dokcer": "did you mean 'docker'?",
    "run --sizes 1XB:2KB": "'1XB' does not parse",
    "run --experiment nope.toml": "experiment nope.toml: no such file",
    "run --experiment allreduce": "measure it with --ops allreduce",
    "run --ops Alreduce": "unknown operations 'Alreduce'; did you mean 'Allreduce'?",
    "run --kinds hwb": "unknown kinds 'hwb'; did you mean 'hbw'?",
    "run --env host --profiles tuned": "drop --profiles, or ask for docker",
    "run --sizes 2MiB:1MiB": "put the smaller first",
    "run --ranks 0": "whole numbers from 1 up",
    "run --ranks many": "ranks 'many' do not parse",
    "run --ranks 100000": "100000 ranks were asked for; this machine has",
    "run --blocks 0": "--blocks '0' must be a whole number, 1 or more",
    "run --seed x": "--seed 'x' must be a whole number",
    "run --resume --mpi impi": "drop the other flags",
    "run --mpi lam": "unknown mpis 'lam'; Known: openmpi, mpich, impi",
    "run --profiles tunde": "unknown profiles 'tunde'; did you mean 'tuned'?",
    "run --layouts isolatd": "did you mean 'isolated'?",
    "run --external IMB": "runs on the host with impi",
    "run --python /nowhere --env host": "/nowhere is not an environment: there is",
    "hosts up --delay 1min": "delay '1min' does not parse",
    "vm --machine knl-snc4-fat": "did you mean 'knl-snc4-flat'?",
    "vm --machine plain --mpi lam": "--mpi 'lam' is not one of openmpi",
    "vm --check": "--check and --line need --machine",
    "vm --line nproc": "--check and --line need --machine",
    "vm --machine plain --check --line nproc": "--check and --line are two things",
    "run --resume --out nowhere": "there is no results folder nowhere",
    "plot --results nowhere": "there is no results folder nowhere",
    "plot --results docker": "docker holds no campaign.json",
    "report --results nowhere": "there is no results folder nowhere",
    "compare nowhere docker": "there is no results folder nowhere",
    "export --results nowhere": "there is no results folder nowhere",
    "export --format xml": "--format 'xml' is not one of osu, csv, parquet, openmetrics",
    "bench --ops Alreduce": "unknown operations 'Alreduce'; did you mean 'Allreduce'?",
    "bench --peers ucx": "unknown --peers 'ucx'; Known: openmpi, mpich, impi",
    "bench --sizes 1KiB:6": "put the smaller first",
    "bench --sizes 2:8": "multiples of the 4 bytes of one float32",
    "bench --ranks 1": "a collective needs 2 ranks or more",
    "bench --ranks 100000": "100000 ranks were asked for; this machine has",
    "bench --cadence fast": "unknown cadence 'fast'; Known: isolated, streaming",
    "bench --forms xyz": "unknown forms 'xyz'; Known: plain, persistent",
    "bench --blocks 0": "--blocks '0' must be a whole number, 1 or more",
    "bench --tune --ranks 2,4": "--tune takes one number of ranks",
    "bench --tune --peers-tuned --ops all": "--ops, --peers-tuned: not with",
    "bench --tune --against docker": "--against: not with --tune",
    "bench --tune --figures there": "it takes --ranks, --blocks, --out, --seed",
    "bench --tune --ranks 1": "a collective needs 2 ranks or more",
    "bench --tune --ranks many": "ranks 'many' do not parse",
    "bench --tune --ops Bcast": "--ops: not with --tune, which measures transport direct",
    "bench --tune --peers mpich --private": "--peers, --private: not with --tune",
    "hosts dwon": "'dwon' is none of up, status, job, shell, down",
    "hosts --rate 9mbit": "--rate is for `hosts up`, not for `hosts status`",
    "hosts up 2 --line x": "--line is for `hosts job`, not for `hosts up`",
    "doctor --ranks 4": "--ranks is for --tuning",
    "doctor --json --tuning": "--json for what this machine has",
    "hosts up 0": "--count '0' must be a whole number, 1 or more",
    "hosts up 2 --rate fast": "rate 'fast' does not parse",
    "hosts up 2 --name My": "--name 'My' cannot name hosts",
    "hosts job": "what is to run? ./inv hosts job --line",
    "hosts job --mpi lam --line x": "--mpi 'lam' is not one of",
    "run --image x": "--image is of a user's program: name it with --program",
    "run --mend": "--mend is of a user's program",
    "run --program a --mpi all": "--mpi is of experiments",
    "run --program=": "--program is empty; name one",
    "run --program a --env slurm": "the driver reaches no process on another node",
    "run --program a --env hosts": "or with ranks on emulated hosts: hosts:2x1gbit",
    "run --program a --resume": "drop the other flags",
    "build --engine lxc": "--engine 'lxc' is not one of docker",
    "build --mpi lam": "--mpi 'lam' is not one of",
}
"""Commands, and a part of their answers."""


def test_a_mistake_is_answered_with_one_message_and_no_traceback(invoke: Invoke) -> None:
    for words, message in MISTAKES.items():
        ended = invoke(*words.split())
        assert (ended.returncode, ended.stdout) == (1, ""), words
        assert message in ended.stderr and "Traceback" not in ended.stderr, words


def test_a_place_that_cannot_be_written_is_refused_before_any_work(
    invoke: Invoke, tmp_path: Path
) -> None:
    (tmp_path / "campaign.json").write_text("{}")
    for words in (
        "paper --out /proc/nowhere",
        f"paper --out {tmp_path} --figures /proc/nowhere",
        "run --out /proc/nowhere",
        "bench --out /proc/nowhere",
        f"bench --out {tmp_path} --figures /proc/nowhere",
        "bench --tune --out /proc/nowhere",
        "plot --results docker --out /proc/nowhere",
        "report --results docker --out /proc/nowhere",
        "report --results docker --out /proc/nowhere/page.html",
        "export --results docker --out /proc/nowhere/a.csv",
    ):
        task, *_, flag, _ = words.split()
        message = (
            f"{task}: cannot write into /proc/nowhere (No such file or directory); "
            f"name another folder with {flag}\n"
        )
        assert invoke(*words.split()) == (1, "", message), words


def test_a_mistake_ends_a_process_with_one_message() -> None:
    ended = process("run", "--ranks", "0")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("run: ")
    assert "whole numbers from 1 up" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_typo_in_an_experiments_file_names_file_and_key(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('title = "t"\nquestion = "q"\n[factors]\nkinds = ["hwb"]\n')
    ended = invoke("run", "--experiment", str(path))
    assert ended.returncode == 1
    assert "mine.toml, [factors]: " in ended.stderr and "unknown kinds" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_words_that_invoke_cannot_parse_end_in_what_to_do_next(invoke: Invoke) -> None:
    for words, advice in {
        "rn": "No idea what 'rn' is! See ./inv --list\n",
        "report one": "No idea what 'one' is! See ./inv report --help\n",
        "run --operations Bcast": "See ./inv run --help\n",
        "bench --ops": "needed value and was not given one! See ./inv bench --help\n",
    }.items():
        ended = invoke(*words.split())
        assert (ended.returncode, ended.stdout) == (1, ""), words
        assert ended.stderr.endswith(advice), words


def test_an_engine_that_cannot_be_reached_is_named_and_nothing_is_begun(tmp_path: Path) -> None:
    ended = process(
        *("run", "--env", "docker", "--out", str(tmp_path / "out")),
        DOCKER_HOST=f"unix://{tmp_path}/none.sock",
    )
    assert ended.returncode == 1
    assert "no container engine answers at DOCKER_HOST" in ended.stderr
    assert not (tmp_path / "out").exists()


def test_a_dry_run_prints_every_command_and_starts_nothing(invoke: Invoke, tmp_path: Path) -> None:
    ended = invoke("run", "--dry-run", "--blocks", "2", "--out", str(tmp_path / "out"))
    lines = ended.stdout.splitlines()
    assert len(lines) == 6
    assert sum(line.startswith("docker run") for line in lines) == 2
    assert sum(line.startswith("unshare") for line in lines) == 1
    assert sum("experiments.programs.harness" in line for line in lines) == 5
    assert lines[-1] == "# 1 more block like it, in random order"
    assert not (tmp_path / "out").exists()


def test_a_dry_run_says_what_is_missing(tmp_path: Path) -> None:
    words = ("run", "--dry-run", "--env", "host,charliecloud,podman,docker")
    ended = process(*words, DOCKER_HOST=f"unix://{tmp_path}/none.sock", PATH=str(tmp_path))
    assert ended.returncode == 0
    assert "docker cannot run here: no container engine answers at DOCKER_HOST" in ended.stderr
    for name in ("charliecloud", "podman"):
        assert f"\n{name} cannot run here: " in ended.stderr


def test_the_users_word_on_where_hbm_is_reaches_every_arm(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MEMKIND_HBW_THRESHOLD", "77")
    ended = invoke("run", "--dry-run", "--blocks", "1", "--out", str(tmp_path / "out"))
    lines = ended.stdout.splitlines()
    assert [line.count("MEMKIND_HBW_THRESHOLD=77") for line in lines] == [1] * 5


def test_a_campaign_is_not_measured_over_another(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "campaign.json").write_text("{}")
    for words in (["run", "--env", "host"], ["bench", f"--figures={tmp_path}/figures"]):
        ended = invoke(*words, "--out", str(tmp_path))
        assert ended.returncode == 1, words
        assert "already holds a campaign; pass --resume" in ended.stderr, words
    assert [path.name for path in tmp_path.iterdir()] == ["campaign.json"]
    assert (tmp_path / "campaign.json").read_text() == "{}"


def test_a_tree_without_the_library_is_refused_before_anything_is_made(
    invoke: Invoke, tmp_path: Path
) -> None:
    ended = invoke("bench", "--against", "docker", "--out", str(tmp_path / "out"))
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "--against docker holds no package hbmcomm" in ended.stderr
    assert not (tmp_path / "out").exists()


def test_doctor_names_a_command_for_each_lack(invoke: Invoke) -> None:
    findings = json.loads(invoke("doctor", "--json").stdout)
    names = [finding["name"] for finding in findings]
    assert {"MPI", "memkind", "HBM", "container engine", "/dev/shm"} <= set(names)
    assert len(set(names)) == len(names)
    for finding in findings:
        assert finding["value"], finding
        assert finding["lack"] or finding["ok"] is not False, finding
        assert finding["remedy"] or not finding["lack"], finding
