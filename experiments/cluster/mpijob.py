"""A campaign as a Kubeflow MPIJob (kubeflow.org/v2beta1): text that Kubernetes takes. Pure.

mpijob.yaml is the template. A launcher pod runs the launches one after the other (pods.py), workers
are the nodes. No pod is root, has a capability or may gain one, or writes into its image. Never run
here.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined, Template

from experiments.cluster import pods
from experiments.environments.host import MODULE
from experiments.environments.mpiexec import across
from experiments.environments.profiles import CONTAINER_USER, shared_memory
from experiments.model.errors import ExperimentsError
from experiments.model.launch import Launch

TEMPLATE = Path(__file__).with_suffix(".yaml")
IMPLEMENTATIONS = {"openmpi": "OpenMPI", "mpich": "MPICH", "impi": "Intel"}
LARGEST = 900 * 1024  # bytes of a ConfigMap; Kubernetes refuses a MiB
LONGEST = 44  # letters of a name; with hbmcomm- and -worker-NNN there may be 63
PLACE = "${POD_IP}"
"""For the launcher's own address, which it alone knows."""


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
        variables: for every rank, as sshd takes them: NAME=VALUE, separated by blanks.
    """

    name: str
    flavour: str
    image: str
    prefix: Path
    nodes: int
    seconds: int
    variables: str

    @property
    def job(self) -> str:
        """A name that Kubernetes takes."""
        word = re.sub(r"[^a-z0-9]+", "-", self.name.lower())[:LONGEST]
        return f"hbmcomm-{word.strip('-')}"


def manifest(asked: Pods, header: Mapping[str, Any], launches: Sequence[Launch]) -> str:
    """The objects to create: a ConfigMap with the campaign's launches, and the MPIJob.

    Args:
        header: campaign.json.
        launches: in their order.

    Raises:
        ExperimentsError: the launches are larger than a ConfigMap may be.
    """
    planned = [
        {"launch": each.to_dict(), "name": each.name, "command": _command(asked, each)}
        for each in launches
    ]
    plan = json.dumps({"launches": planned})
    described = json.dumps(header, sort_keys=True)
    if (size := len(described) + len(plan)) > LARGEST:
        raise ExperimentsError(
            f"the campaign's {len(launches)} launches take {size:,} bytes, and a ConfigMap holds "
            f"{LARGEST:,}: ask for fewer with --blocks, --ranks or --sizes"
        )
    template = Template(
        TEMPLATE.read_text("utf-8"), undefined=StrictUndefined, keep_trailing_newline=True
    )
    text: str = template.render(
        **asdict(asked),
        job=asked.job,
        implementation=IMPLEMENTATIONS[asked.flavour],
        ranks=max(each.ranks for each in launches) // asked.nodes,  # on a worker, at most
        header=described,
        plan=plan,
        pods=pods,
        shared_memory=shared_memory,
        user=CONTAINER_USER,
    )
    return text


def _command(asked: Pods, launch: Launch) -> list[str]:
    """The words that start a launch's ranks on the workers, but for its folder."""
    each = launch.ranks // asked.nodes
    workers = [f"{asked.job}-worker-{number}.{asked.job}" for number in range(asked.nodes)]
    hosts = [worker for worker in workers for _ in range(each)]
    program = [str(asked.prefix / "bin/python"), *MODULE]
    home, ssh = (PLACE, "eth0"), Path("/usr/bin/ssh")
    argv, variables = across(asked.flavour, asked.prefix, hosts, home, len(hosts), program, ssh)
    return ["env", *(f"{name}={value}" for name, value in sorted(variables.items())), *argv]
