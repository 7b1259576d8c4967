"""The invoke task `run`, for tasks.py: its many flags, and the call that they ask for."""

from invoke.context import Context

from commands import campaigns, programs
from commands.exits import command
from experiments.model.environment import ENVIRONMENTS


@command(
    help={
        "experiment": "a name that --list shows, or a .toml file (default: quick)",
        "list": "print all experiments: question, arms, cells, time, needs; measure nothing",
        "env": f"of {','.join(map(str, ENVIRONMENTS))}, or all: those that this machine can run; "
        "in an emulated machine: vm:MACHINE, vm-docker:MACHINE; on emulated hosts: hosts:4, "
        "hosts:4x100mbit, hosts-charliecloud:4; of a cluster: slurm, slurm-charliecloud ...",
        "profiles": "of containers: default,tuned,privileged, or all: these three; userns, a user "
        "namespace, takes a Podman of root and ids in /etc/subuid (default: the experiment's)",
        "layouts": "of containers: one,per-rank,isolated, or all (default: the experiment's)",
        "ops": "Allreduce,Bcast, ... or all (default: the experiment's)",
        "kinds": "of memory: regular,hbw, ... or all (default: the experiment's)",
        "ranks": "rank counts: 2,4",
        "sizes": "bytes per rank: 1KiB:64MiB, 1KiB:64MiB:4 (factor 4) or 1k,1m (of 1024 each)",
        "blocks": "paired repetitions",
        "out": "results folder (default: results/<experiment>-<time>)",
        "resume": "complete the campaign in --out (default: the newest), as it was begun; a "
        "--python, --site or --base is given again",
        "dry_run": "print the commands of one block, how long, how much memory and what is "
        "missing here; start nothing",
        "emulate_hbw": "emulate HBM on ordinary memory where there is none; results say so",
        "mpi": "of openmpi,mpich,impi, or all (default: the experiment's)",
        "external": "references in the same blocks: IMB, a C benchmark (with --mpi impi); threads, "
        "multiprocessing: Python without an MPI",
        "base": "base image, as for build",
        "seed": "seed of all random orders (default: random, and stored)",
        "site": "with --env slurm: a table of ~/.config/hbmcomm/sites.toml (default: the only one)",
        "nodes": "with --env slurm: nodes, which share --ranks equally (default: the site's)",
        "launcher": "with --env slurm: srun or mpiexec (default: the site's)",
        "time": "with --env slurm: limit of the job (default: the site's, or from the forecast)",
        "python": "an environment of the site, with its MPI, for arms without a container",
        "program": "your own program, in quotes: what a container costs it (see Examples)",
        "host_program": "with --program: the same program on this machine, where its words differ",
        "image": "with --program: the image that holds it",
        "options": "with --program: more words for docker run, in quotes: '--cpus 1'",
        "workdir": "with --program: a folder; each run works in a fresh copy of it",
        "metric": "with --program: a regular expression; its group is the program's own figure",
        "seconds": "with --program: measure so much of each run and end it by SIGTERM",
        "mend": "with --program: run containers also as the profile tuned, which mends most causes",
        "uncounted": "with --program: show what counting its calls of MPI costs",
    }
)
def run(
    context: Context,
    experiment: str = "",
    list: bool = False,
    env: str = "",
    profiles: str = "",
    layouts: str = "",
    ops: str = "",
    kinds: str = "",
    ranks: str = "",
    sizes: str = "",
    blocks: str = "",
    out: str = "",
    resume: bool = False,
    dry_run: bool = False,
    emulate_hbw: bool = False,
    mpi: str = "",
    external: str = "",
    base: str = "",
    seed: str = "",
    site: str = "",
    nodes: str = "",
    launcher: str = "",
    time: str = "",
    python: str = "",
    program: str | None = None,
    host_program: str = "",
    image: str = "",
    options: str = "",
    workdir: str = "",
    metric: str = "",
    seconds: str = "",
    mend: bool = False,
    uncounted: bool = False,
) -> None:
    """A campaign: randomised, paired blocks of launches into a results folder.

    Ctrl-C ends the launch under way and keeps those that finished; --resume goes on.

    With --env slurm it runs over the nodes of one allocation: of this process, or of a job that is
    submitted and followed to its end. --dry-run then prints the job's script.

    With --program it measures your own program, on this machine and in its image, both alive and
    one at work at a time, and says what the container costs it and why.

    Examples:  ./inv run --list
               ./inv run --experiment docker --ranks 2,4 --blocks 10
               ./inv run --ops Allreduce --kinds regular --sizes 1KiB:64MiB:4
               ./inv run --env host,docker --profiles all --layouts one,isolated --mpi all
               ./inv run --experiment placement --env vm:knl-snc4-flat --sizes 1MiB --blocks 1
               ./inv run --env slurm,slurm-charliecloud --nodes 2 --ranks 8 --mpi all
               ./inv run --env hosts:4x100mbit --ranks 8
               ./inv run --resume --out results/docker-20260102-030405
               ./inv run --program 'python train.py' --image my/app:1.2 --ranks 2
               ./inv run --program 'mpiexec -n 2 ./a.out' --image my/app:1.2 --profiles all
               ./inv run --program ./a.out --env host,hosts:2x1gbit --ranks 4
    """
    flags = {"experiment": experiment, "site": site, "blocks": blocks, "profiles": profiles}
    flags |= {"layouts": layouts, "ranks": ranks, "sizes": sizes, "env": env, "mpi": mpi}
    flags |= {"external": external, "launcher": launcher, "nodes": nodes, "base": base}
    flags |= {"seed": seed, "python": python, "ops": ops, "kinds": kinds}
    choices = campaigns.Choices(dict(flags), emulate_hbw)
    of_program = {"host_program": host_program, "image": image}
    of_program |= {"options": options, "workdir": workdir, "metric": metric, "seconds": seconds}
    shared = {name: flags.pop(name) if name != "out" else out for name in programs.SHARED}
    if list:
        campaigns.list_experiments()
    elif program is not None or any((*of_program.values(), mend, uncounted)):
        others = flags | {"time": time}
        programs.start(program, of_program | shared, others, dry_run, resume, mend, uncounted)
    elif resume and programs.is_resumed(out):
        programs.resume(out)
    elif resume:
        campaigns.resume(out, choices, dry_run, time)
    else:
        campaigns.start(choices, out, dry_run, time)
