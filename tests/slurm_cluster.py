"""A real Slurm on emulated hosts: slurmctld and munge on the switch, a slurmd on each host."""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from experiments.emulation.emulated_hosts import Hosts, up
from experiments.environments.mpiexec import outside_jobs
from experiments.model.checkout import ROOT
from experiments.processes import executables
from tests.tiny_campaign import tiny

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged")
START = 30.0  # seconds until all nodes are idle
CONFIGURATION = """\
ClusterName=hbmcomm
SlurmctldHost=ctl(10.99.0.254)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
TmpFS={folder}/tmp-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0
ReturnToService=2
SlurmdParameters=config_overrides
SlurmdTimeout=30
KillWait=5
MailProg=/bin/true
"""


@dataclass(frozen=True)
class Cluster:
    """A cluster with two nodes of two CPUs, and its login node: the host of slurmctld.

    Attributes:
        folder: of this machine, that all nodes see.
    """

    hosts: Hosts
    folder: Path

    @property
    def variables(self) -> Mapping[str, str]:
        """Variables of a user on the login node; sites.toml is in the cluster's folder."""
        own = {"SLURM_CONF": f"{self.folder}/slurm.conf", "XDG_CONFIG_HOME": str(self.folder)}
        return outside_jobs(os.environ) | own

    def begin(self, *words: str) -> "subprocess.Popen[str]":
        """Start a command on the login node, in the checkout."""
        return subprocess.Popen(
            [*self.hosts.enter("ctl", str(ROOT)), *words],
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, timeout: float = 200.0) -> "subprocess.CompletedProcess[str]":
        """Run a command on the login node to its end."""
        process = self.begin(*words)
        try:
            out, errors = process.communicate(timeout=timeout)
        finally:
            process.kill()
        return subprocess.CompletedProcess(words, process.returncode, out, errors)

    def signal(self, host: str, word: str, number: int) -> int:
        """Send a signal to the processes of a host with a word in their command; how many."""
        count = 0
        for pid in self.hosts.processes(host):
            with contextlib.suppress(OSError):
                if word.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, number)
                    count += 1
        return count

    def write_site(self, more: str = "") -> None:
        """A site for hosts that share this machine's CPUs: ranks yield."""
        path = self.folder / "hbmcomm" / "sites.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            f'[emulated]\nnodes = 2\nshared = "{self.folder}"\ntime = "10"\n{more}\n'
            '[emulated.variables]\nOMPI_MCA_mpi_yield_when_idle = "1"\nI_MPI_WAIT_MODE = "1"\n'
            'MPIR_CVAR_ENABLE_HEAVY_YIELD = "1"\n'
        )


def begin(
    slurm: Cluster, name: str, *flags: str, blocks: int = 1, aa_pair: bool = False
) -> "subprocess.Popen[str]":
    """Start a campaign from the login node, into a folder of that name."""
    spec = slurm.folder / f"{name}.toml"
    launches = {"environments": ["slurm"], "ranks": [4], "blocks": blocks, "aa_pair": aa_pair}
    spec.write_text(tiny(launches=launches))
    return slurm.begin("./inv", "run", "--experiment", str(spec), "--out", name, *flags)


def lacking() -> str:
    """Why no cluster can start here; "" where one can."""
    absent = [name for name in PROGRAMS if executables.find(name) is None]
    return f"{', '.join(absent)} not installed" if absent else ""


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """A cluster for the time of a block; HostsRefused where there can be no hosts."""
    with up(2) as hosts:
        _write(folder, hosts)
        cluster = Cluster(hosts, folder)
        munge = ("munged", "--foreground", "--force", f"--key-file={folder}/munge.key")
        files = ((name, f"{folder}/munge.{name}") for name in ("socket", "pid-file", "log-file"))
        _start(cluster, "ctl", *munge, *(f"--{name}={path}" for name, path in files))
        _start(cluster, "ctl", "slurmctld", "-D", "-c")
        for name in hosts.names:
            start_node(cluster, name)
        await_idle(cluster)
        yield cluster


def start_node(cluster: Cluster, name: str) -> None:
    """Start a slurmd on a host."""
    _start(cluster, name, "slurmd", "-D")


def _write(folder: Path, hosts: Hosts) -> None:
    for name in ("state", *(f"{kind}-{host}" for kind in ("spool", "tmp") for host in hosts.names)):
        (folder / name).mkdir()
    nodes = [
        f"NodeName={name} CPUs=2 CoresPerSocket=2 RealMemory=2000 State=UNKNOWN"
        for name in hosts.names
    ]
    every = ",".join(hosts.names)
    partitions = [
        f"PartitionName=all Nodes={every} Default=YES MaxTime=30 State=UP",
        f"PartitionName=short Nodes={every} MaxTime=1 State=UP",
    ]
    text = CONFIGURATION.format(folder=folder) + "\n".join([*nodes, *partitions, ""])
    (folder / "slurm.conf").write_text(text)
    (folder / "cgroup.conf").write_text("CgroupAutomount=no\n")
    key = folder / "munge.key"
    key.touch(mode=0o400)
    key.write_bytes(os.urandom(1024))


def _start(cluster: Cluster, host: str, *words: str) -> None:
    """A daemon that ends with the hosts."""
    with (cluster.folder / f"{words[0]}-{host}.out").open("w") as log:
        subprocess.Popen(
            [*cluster.hosts.enter(host), str(executables.find(words[0])), *words[1:]],
            env=cluster.variables,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def await_idle(cluster: Cluster) -> None:
    deadline = time.monotonic() + START
    while "idle" not in (seen := _nodes(cluster)):
        assert time.monotonic() < deadline, f"the nodes do not come up: {seen}"
        time.sleep(0.1)


def _nodes(cluster: Cluster) -> str:
    """The states of the nodes, each once."""
    done = cluster.run("sinfo", "--noheader", "--format=%t", "--partition=all")
    states = set(done.stdout.split())
    return " ".join(sorted(states)) if len(states) != 1 else states.pop()
