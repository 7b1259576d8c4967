"""A campaign as an MPIJob: what its schema demands, least privilege, and a campaign by its plan."""

import json
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from commands import clusters
from experiments.analysis import reading
from experiments.catalogue import spec
from experiments.cluster import mpijob, pods
from experiments.driver.campaign import Request
from experiments.environments.mpiexec import mpiexec
from experiments.environments.profiles import CONTAINER_USER
from experiments.model.environment import MPIS
from experiments.model.errors import ExperimentsError
from experiments.provision import mpi_wheels as mpi_provision
from experiments.provision import passthrough
from tests.tiny_campaign import tiny

SCHEMA = json.loads(Path(__file__).with_name("mpijob.schema.json").read_text("utf-8"))
IMAGE = "registry.example.org/hbmcomm-ssh:7"


def objects(mpis: str = "openmpi", **launches: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """The two objects of a small campaign, read from the manifest's text."""
    values = {"environments": ["slurm"], "launcher": "mpiexec", "nodes": 2, "ranks": [2, 4]}
    asked = tiny(
        factors={"transports": ["mpi"]}, launches=values | {"mpis": mpis.split(",")} | launches
    )
    experiment = spec.from_dict(tomllib.loads(asked) | {"name": "pods"}, "test")
    text = clusters.mpijob(experiment, Request(Path("results/Pods_7"), seed=1), IMAGE)
    assert text.startswith("# ") and "No manifest of this kind has run." in text.splitlines()[0]
    config, job = yaml.safe_load_all(text)
    return config, job


def refused(job: dict[str, Any]) -> bool:
    return not jsonschema.Draft202012Validator(SCHEMA).is_valid(job)


def containers(job: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for replica in job["spec"]["mpiReplicaSpecs"].values():
        pod = replica["template"]["spec"]
        for each in pod["containers"]:
            yield pod, each


@pytest.mark.parametrize("mpi", MPIS)
def test_the_manifest_is_what_the_published_schema_takes(mpi: str) -> None:
    config, job = objects(mpi)
    jsonschema.validate(job, SCHEMA)
    assert job["metadata"]["name"] == config["metadata"]["name"] == "hbmcomm-pods-7"
    assert job["spec"]["slotsPerWorker"] == 2
    assert job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 2
    assert job["spec"]["mpiImplementation"] == mpijob.IMPLEMENTATIONS[mpi]


def test_the_schema_refuses_unknown_fields_and_lacking_ones() -> None:
    _, job = objects()

    def changed(change: Any) -> dict[str, Any]:
        copy = json.loads(json.dumps(job))
        change(copy["spec"], copy["spec"]["mpiReplicaSpecs"]["Worker"])
        return dict(copy)

    assert not refused(changed(lambda spec, worker: None))
    for change in (
        lambda spec, worker: spec.update(slotPerWorker=2),
        lambda spec, worker: spec.pop("sshAuthMountPath"),
        lambda spec, worker: spec["runPolicy"].update(cleanPodPolicy="running"),
        lambda spec, worker: spec["mpiReplicaSpecs"].pop("Launcher"),
        lambda spec, worker: spec["mpiReplicaSpecs"]["Launcher"].update(replicas=2),
        lambda spec, worker: worker.update(restartPolicy="Always"),
        lambda spec, worker: worker["template"]["spec"].update(runAsNonRoot=True),
        lambda spec, worker: worker["template"]["spec"]["containers"][0].pop("name"),
        lambda spec, worker: worker["template"]["spec"]["containers"].clear(),
    ):
        assert refused(changed(change))


def test_no_pod_has_a_privilege() -> None:
    _, job = objects()
    found = list(containers(job))
    assert len(found) == 2
    for pod, container in found:
        assert container["image"] == IMAGE
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["runAsUser"] == CONTAINER_USER
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }
        mounts = {each["name"] for each in container["volumeMounts"]}
        assert mounts == {each["name"] for each in pod["volumes"]}


@pytest.mark.parametrize("mpi", MPIS)
def test_ranks_are_started_on_the_workers_by_ssh(mpi: str) -> None:
    config, _ = objects(mpi)
    plan = json.loads(config["data"][pods.LAUNCHES])["launches"]
    assert sorted(each["launch"]["ranks"] for each in plan) == [2, 4]
    for each in plan:
        line = " ".join(each["command"])
        hosts = re.findall(r"hbmcomm-pods-7-worker-\d\.hbmcomm-pods-7", line)
        assert {name[-len("0.hbmcomm-pods-7") :][0] for name in hosts} == {"0", "1"}
        assert "/usr/bin/ssh" in line
        assert each["command"][-1] == "experiments.programs.harness"


def test_several_mpis_and_too_many_launches_are_refused() -> None:
    with pytest.raises(ExperimentsError, match=r"one MPI, and openmpi, mpich were asked for"):
        objects("openmpi,mpich")
    with pytest.raises(ExperimentsError, match=r"2000 launches take .* ask for fewer"):
        objects(blocks=1000)


@pytest.mark.ranks
def test_the_plan_is_measured_into_a_folder_that_readers_take(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With ranks of this machine in the place of workers; the second time goes on."""
    config, _ = objects(nodes=1, ranks=[1, 2])
    plan = json.loads(config["data"][pods.LAUNCHES])["launches"]
    prefix = mpi_provision.ensure("openmpi", print)
    program = [f"{prefix}/bin/python", "-P", "-m", "experiments.programs.harness"]
    for each in plan:
        argv, variables = mpiexec(
            "openmpi", prefix, each["launch"]["ranks"], passthrough.cores(), program
        )
        each["command"] = ["env", *(f"{key}={value}" for key, value in variables.items()), *argv]
    folder, out = tmp_path / "plan", tmp_path / "out"
    folder.mkdir()
    (folder / "campaign.json").write_text(config["data"]["campaign.json"])
    failing = [plan[0], {**plan[1], "command": [sys.executable, "-c", "raise SystemExit(7)"]}]
    (folder / pods.LAUNCHES).write_text(json.dumps({"launches": failing}))
    with pytest.raises(SystemExit, match=r"ended with exit code 7: see .*\.log"):
        pods.measure(folder, out)
    (folder / pods.LAUNCHES).write_text(json.dumps({"launches": plan}))
    pods.measure(folder, out)
    names = [each["name"] for each in plan]
    assert capsys.readouterr().out.splitlines() == [f"{name} is measured" for name in names]
    assert len(reading.load(out).launches) == 2
    assert not (out / "incoming").exists()


@pytest.mark.timeout(20)
def test_a_log_that_is_a_pipe_is_named_and_nothing_waits_for_its_reader(tmp_path: Path) -> None:
    config, _ = objects()
    (tmp_path / "campaign.json").write_text(config["data"]["campaign.json"])
    (tmp_path / pods.LAUNCHES).write_text(config["data"][pods.LAUNCHES])
    first = json.loads(config["data"][pods.LAUNCHES])["launches"][0]["name"]
    log = tmp_path / "out" / "logs" / f"{first}.log"
    log.parent.mkdir(parents=True)
    os.mkfifo(log)
    with pytest.raises(ExperimentsError, match=f"{log} is no plain file, .*; .* remove it"):
        pods.measure(tmp_path, tmp_path / "out")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"name": "../../x"}, r"launches\[0\]\.name holds '\.\./\.\./x', and must be text"),
        ({"name": 5}, r"launches\[0\]\.name holds 5"),
        ({"command": "rm"}, r"launches\[0\]\.command holds 'rm', and must be a list"),
        ({"command": [1]}, r"launches\[0\]\.command\[0\] holds 1"),
        ({"launch": []}, r"launches\[0\]\.launch holds \[\], and must be a table"),
    ],
)
def test_a_plan_of_another_form_is_refused_before_anything_starts(
    tmp_path: Path, change: dict[str, Any], text: str
) -> None:
    config, _ = objects()
    plan = json.loads(config["data"][pods.LAUNCHES])
    plan["launches"][0] |= change
    (tmp_path / "campaign.json").write_text(config["data"]["campaign.json"])
    (tmp_path / pods.LAUNCHES).write_text(json.dumps(plan))
    with pytest.raises(ExperimentsError, match=rf"{pods.LAUNCHES} cannot be read \({text}"):
        pods.measure(tmp_path, tmp_path / "out")
    assert not list(tmp_path.glob("out/launches/*"))
