"""An archive has words in place of names of the machine that measured, and keeps all others."""

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.model.checkout import ROOT
from experiments.results import local_names
from experiments.results.local_names import Replacing

NAMES = {
    "RESULTS": ["/scratch/hbm/results/one"],
    "CHECKOUT": ["/scratch/hbm", "/mnt/disk/hbm"],
    "HOME": ["/home/alice"],
    "USER": ["alice"],
    "HOST": ["node7.cluster.example", "node7"],
}
REPLACING = Replacing(NAMES)


def replaced(values: dict[str, Any]) -> Any:
    return json.loads(REPLACING.content("campaign.json", json.dumps(values).encode()))


def test_longest_names_are_replaced_where_they_are_whole() -> None:
    ranks = "[node7:812:0] of alice_1000 on node7.cluster.example"
    for line, expected in {
        "PATH=/scratch/hbm/.venv/bin:/usr/bin": "PATH=CHECKOUT/.venv/bin:/usr/bin",
        "-I/mnt/disk/hbm/include": "-ICHECKOUT/include",
        "/scratch/hbm/results/one/incoming/0001-host": "RESULTS/incoming/0001-host",
        "/scratch/hbm2/x": "/scratch/hbm2/x",
        ranks: "[HOST:812:0] of USER_1000 on HOST",
        "malice node77": "malice node77",
    }.items():
        assert REPLACING.content("logs/0001-host.log", line.encode()).decode() == expected


def test_other_folders_of_a_command_keep_their_last_part() -> None:
    line = (
        "docker run --volume /data/bob/x.toml:/launch:rw --workdir=/tmp -e TMPDIR=/dev/shm "
        "sh -c 'mount \"/$1\"' /opt/hbmcomm/bin/python /tmp/out"
    )
    assert replaced({"command": line})["command"] == line.replace("/data/bob", "FOLDER").replace(
        "/tmp/out", "FOLDER/out"
    )
    assert replaced({"command": ["run", "/data/x"]}) == {"command": ["run", "FOLDER/x"]}


def test_a_users_name_that_is_also_a_word_of_the_experiment_stays_there() -> None:
    names = Replacing({"USER": ["bcast"], "CHECKOUT": ["/scratch/hbm"]})
    values = {
        "experiment": {"factors": {"operations": ["bcast"]}, "title": "of /scratch/hbm/x"},
        "reason": "bcast may not write",
    }
    text = names.content("campaign.json", json.dumps(values).encode())
    assert json.loads(text) == {
        "experiment": {"factors": {"operations": ["bcast"]}, "title": "of CHECKOUT/x"},
        "reason": "USER may not write",
    }


def test_names_that_identify_nobody_stay() -> None:
    for name in ("root", "vm", "ubuntu", ""):
        names = Replacing({"USER": [name], "HOST": [name]})
        assert names.content("logs/guard.log", b"root vm ubuntu") == b"root vm ubuntu", name


def test_samples_and_files_without_names_keep_their_bytes() -> None:
    for name, content in (
        ("launches/0001-host.npz", b"alice \x00\xff"),
        ("logs/0001-host.log", b"no name \xff\r\n"),
        ("campaign.json", b'{"b": 1,"a": 2}'),
    ):
        assert REPLACING.content(name, content) == content


def test_nodes_of_a_cluster_are_numbered_and_emulated_hosts_keep_their_names() -> None:
    launches = [{"environment": {"hosts": [{"name": name}]}} for name in ("rz9", "n1", "rz10")]
    nodes = local_names.of_nodes([*launches, {}])
    assert nodes == {"HOST1": ["rz10"], "HOST2": ["rz9"]}
    assert Replacing(nodes).json(launches[0]) == {"environment": {"hosts": [{"name": "HOST2"}]}}


def test_this_machines_names_are_recorded_however_they_are_spelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.setenv("HOME", "/home/alice")
    monkeypatch.setenv("LOGNAME", "alice")
    names = local_names.here(tmp_path / "link" / "out")
    assert names["RESULTS"] == [str(tmp_path / "link" / "out"), str(tmp_path / "out")]
    assert (names["CHECKOUT"], names["HOME"], names["USER"]) == (
        [str(ROOT)],
        ["/home/alice"],
        ["alice"],
    )


def test_a_campaign_of_before_names_its_checkout_in_its_command(tmp_path: Path) -> None:
    header = {"command": ["invoke", "--search-root", "/data/checkout", "run"]}
    assert "/data/checkout" in local_names.before(header, tmp_path)["CHECKOUT"]
    assert local_names.before({}, tmp_path)["CHECKOUT"] == [str(ROOT), ""]
