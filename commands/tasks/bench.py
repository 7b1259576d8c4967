"""The invoke task `bench`, for tasks.py: its many flags, and the call that they ask for."""

from invoke.context import Context

from commands import benches
from commands.exits import command


@command(
    help={
        "ranks": "rank counts: 2,4 (default: one per core, 16 at most)",
        "sizes": "bytes per rank, as for run (default: 8:16MiB:8)",
        "ops": "Allreduce,Bcast, ... or all (default: Bcast,Gather,Allreduce)",
        "peers": "of openmpi,mpich,impi,pickle,gloo,torch,operators,vllm,deepspeed (default: all "
        "that can be had)",
        "peers-tuned": "each MPI in all settings known to make it faster; its best counts per cell",
        "forms": "of plain,persistent,nonblocking,in-place (default: plain,persistent)",
        "against": "a checkout or installed tree of another build of hbmcomm, to compare with",
        "private": "over ordinary NumPy arrays instead of arrays of the arena",
        "cadence": "isolated (default: synchronised before each operation) or streaming",
        "blocks": "launches of each MPI and setting (default: 6, the fewest with an interval)",
        "tune": "measure the thresholds of transport direct here and propose a table; takes "
        "--ranks (one number, default: 2), --blocks, --out, --seed and --json",
        "out": "results folder (default: results/bench-<time>, of --tune: results/tune-<time>)",
        "figures": "folder for the figures (default: figures/bench-<time>)",
        "seed": "seed of all random orders (default: random, and stored)",
        "json": "print JSON instead of tables",
        "results": "print a stored bench again, and measure nothing; takes --json",
    }
)
def bench(
    context: Context,
    ranks: str = "",
    sizes: str = "",
    ops: str = "",
    peers: str = "",
    peers_tuned: bool = False,
    forms: str = "",
    against: str = "",
    private: bool = False,
    cadence: str = "",
    blocks: str = "",
    tune: bool = False,
    out: str = "",
    figures: str = "",
    seed: str = "",
    json: bool = False,
    results: str = "",
) -> None:
    """hbmcomm against MPIs, pickle, torch.distributed and operators of torch on this machine.

    All MPIs are alive at the same time and take turns; each measures itself and hbmcomm over the
    same buffers, and ratios are paired within it. Ctrl-C shows what there is.

    With --tune no peer takes part: each threshold of transport direct (./inv doctor --tuning) is
    tried on both sides of its value. Values that are faster on this machine beyond its noise are
    printed as a table and as `export HBMCOMM_...` lines. About two minutes; tune for the number of
    ranks that you run.

    Examples:  ./inv bench
               ./inv bench --ops Allreduce --sizes 1KiB:16MiB:4
               ./inv bench --ranks 2,4 --peers openmpi,pickle --private --json
               ./inv bench --peers-tuned --ops all --forms plain,persistent,nonblocking
               ./inv bench --ops Allreduce --forms in-place --peers operators,vllm,deepspeed
               ./inv bench --peers openmpi --against ../hbmcomm-0.1
               ./inv bench --results results/bench-20260102-030405
               ./inv bench --tune --ranks 4
    """
    flags: dict[str, str | bool] = {"ranks": ranks, "blocks": blocks, "out": out, "seed": seed}
    flags |= {"ops": ops, "sizes": sizes, "peers": peers, "peers-tuned": peers_tuned}
    flags |= {"forms": forms, "against": against, "private": private, "cadence": cadence}
    flags |= {"figures": figures}
    if results:
        benches.show(results, json)
    elif tune:
        benches.tune(flags, json)
    else:
        benches.compare_peers(flags, json)
