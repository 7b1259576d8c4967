"""A campaign as a Kubeflow MPIJob (kubeflow.org/v2beta1): objects that Kubernetes takes. Pure.

A launcher pod runs the launches one after the other (pods.py), workers are the nodes. No pod is
root, has a capability or may gain one, or writes into its image. Never run here.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.cluster.pods import LAUNCHES, PLAN, RESULTS
from experiments.environments.mpi.mpiexec import across
from experiments.environments.profiles import shared_memory
from experiments.model.errors import ExperimentsError
from experiments.model.launch import Launch

CLAIM = "hbmcomm-results"
"""The volume for results: a claim that all pods can mount (ReadWriteMany)."""
IMPLEMENTATIONS = {"openmpi": "OpenMPI", "mpich": "MPICH", "impi": "Intel"}
USER = 1000  # of the harness image
KEYS, PORT = "/keys", 2222
SSH = f"""\
Host *
  Port {PORT}
  IdentityFile {KEYS}/id_rsa
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
"""
LARGEST = 900 * 1024  # bytes of a ConfigMap; Kubernetes refuses a MiB
LONGEST = 44  # letters of a name; with hbmcomm- and -worker-NNN there may be 63
PLACE = "${POD_IP}"
"""For the launcher's own address, which it alone knows."""

Manifest = dict[str, Any]


class NoManifest(ExperimentsError):
    """A campaign that no MPIJob can hold."""


@dataclass(frozen=True)
class Pods:
    """What a campaign's pods have in common.

    Attributes:
        name: of the campaign.
        flavour: the MPI, one of MPIS.
        image: with an SSH server beside what the harness image holds.
        prefix: the environment in the image that holds the MPI.
        nodes: workers.
        seconds: that the campaign may take.
        variables: for every rank.
    """

    name: str
    flavour: str
    image: str
    prefix: Path
    nodes: int
    seconds: int
    variables: Mapping[str, str]

    @property
    def job(self) -> str:
        """A name that Kubernetes takes."""
        word = re.sub(r"[^a-z0-9]+", "-", self.name.lower())[:LONGEST]
        return f"hbmcomm-{word.strip('-')}"


def manifest(
    pods: Pods, header: Mapping[str, Any], launches: Sequence[Launch]
) -> tuple[Manifest, Manifest]:
    """The objects to create: a ConfigMap with the campaign's launches, and the MPIJob.

    Args:
        header: campaign.json.
        launches: in their order.

    Raises:
        NoManifest: the launches are larger than a ConfigMap may be.
    """
    plan = [
        {"launch": each.to_dict(), "name": each.name, "command": _command(pods, each)}
        for each in launches
    ]
    data = {
        "campaign.json": json.dumps(header, sort_keys=True) + "\n",
        LAUNCHES: json.dumps(plan) + "\n",
        "ssh_config": SSH,
    }
    size = sum(map(len, data.values()))
    if size > LARGEST:
        raise NoManifest(
            f"the campaign's {len(launches)} launches take {size:,} bytes, and a ConfigMap holds "
            f"{LARGEST:,}: ask for fewer with --blocks, --ranks or --sizes"
        )
    return _config(pods, data), _job(pods, max(each.ranks for each in launches) // pods.nodes)


def _command(pods: Pods, launch: Launch) -> list[str]:
    """The words that start a launch's ranks on the workers, but for its folder."""
    each = launch.ranks // pods.nodes
    workers = [f"{pods.job}-worker-{number}.{pods.job}" for number in range(pods.nodes)]
    hosts = [worker for worker in workers for _ in range(each)]
    program = [str(pods.prefix / "bin/python"), "-m", "experiments.programs.harness"]
    home, ssh = (PLACE, "eth0"), Path("/usr/bin/ssh")
    argv, variables = across(pods.flavour, pods.prefix, hosts, home, len(hosts), program, ssh)
    return ["env", *(f"{name}={value}" for name, value in sorted(variables.items())), *argv]


def _config(pods: Pods, data: Mapping[str, str]) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": pods.job},
        "data": dict(data),
    }


def _job(pods: Pods, ranks: int) -> Manifest:
    """The MPIJob, for so many ranks on a worker at most."""
    begin = [f"{pods.prefix}/bin/python", "-m", "experiments.cluster.pods", pods.name]
    given = " ".join(f"{name}={value}" for name, value in sorted(pods.variables.items()))
    options = {
        "Port": str(PORT),
        "HostKey": f"{KEYS}/id_rsa",
        "AuthorizedKeysFile": f"{KEYS}/authorized_keys",
        "StrictModes": "no",
        "PidFile": "none",
        "UsePAM": "no",
        "PasswordAuthentication": "no",
        **({"SetEnv": given} if given else {}),
    }
    serve = ["/usr/sbin/sshd", "-De", "-f", "/dev/null"]
    serve += [f"-o{name}={value}" for name, value in options.items()]
    address = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    launcher = {"command": begin, "env": [address, {"name": "HOME", "value": "/tmp"}]}
    worker = {
        "command": serve,
        "readinessProbe": {"tcpSocket": {"port": PORT}, "initialDelaySeconds": 2},
        "resources": {"limits": {"cpu": ranks}},
    }
    apart = {
        "labelSelector": {"matchLabels": {"hbmcomm": pods.job}},
        "topologyKey": "kubernetes.io/hostname",
    }
    spread = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": pods.job},
        "spec": {
            "slotsPerWorker": ranks,
            "mpiImplementation": IMPLEMENTATIONS[pods.flavour],
            "launcherCreationPolicy": "WaitForWorkersReady",
            "sshAuthMountPath": KEYS,
            "runPolicy": {
                "cleanPodPolicy": "Running",
                "backoffLimit": 0,
                "activeDeadlineSeconds": pods.seconds,
            },
            "mpiReplicaSpecs": {
                "Launcher": _replicas(pods, 1, 1, launcher, {}, {}),
                "Worker": _replicas(
                    pods, pods.nodes, ranks, worker, {"affinity": spread}, {"hbmcomm": pods.job}
                ),
            },
        },
    }


def _replicas(
    pods: Pods,
    count: int,
    ranks: int,
    own: Mapping[str, Any],
    placed: Mapping[str, Any],
    labels: Mapping[str, str],
) -> Manifest:
    """Pods of one container, with no privilege.

    Args:
        ranks: that share a pod's memory.
        own: of the container.
        placed: of the pod.
    """
    ssh = "/etc/ssh/ssh_config.d/hbmcomm.conf"
    container = {
        "name": "hbmcomm",
        "image": pods.image,
        "workingDir": "/tmp",
        **own,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [
            {"name": "results", "mountPath": str(RESULTS)},
            {"name": "plan", "mountPath": str(PLAN), "readOnly": True},
            {"name": "plan", "mountPath": ssh, "subPath": "ssh_config", "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},
            {"name": "shm", "mountPath": "/dev/shm"},
        ],
    }
    memory = {"medium": "Memory", "sizeLimit": shared_memory(ranks)}
    spec = {
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        **placed,
        "containers": [container],
        "volumes": [
            {"name": "results", "persistentVolumeClaim": {"claimName": CLAIM}},
            {"name": "plan", "configMap": {"name": pods.job}},
            {"name": "tmp", "emptyDir": {}},
            {"name": "shm", "emptyDir": memory},
        ],
    }
    template = {**({"metadata": {"labels": dict(labels)}} if labels else {}), "spec": spec}
    return {"replicas": count, "restartPolicy": "Never", "template": template}
