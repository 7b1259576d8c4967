"""Arms of a campaign on a real Slurm take turns over nodes, unless the site switches that off.

By hand, with enough blocks for a noise floor of each (`-s` prints it):
    HBMCOMM_BLOCKS=8 .venv/bin/pytest -s tests/experiments/cluster/test_arms.py
"""

import os
from pathlib import Path

import pytest

from experiments.analysis.ratios import floors
from experiments.analysis.reading import load
from experiments.analysis.validity_warnings import awake
from experiments.model.environment import MPIS
from experiments.results import store
from tests.slurm_cluster import Cluster
from tests.tiny_campaign import tiny

BLOCKS = int(os.environ.get("HBMCOMM_BLOCKS", "1"))
LONG = {"time_cap": 0.5, "min_iterations": 10, "max_iterations": 2000}
CHANGES = {
    "factors": {"operations": ["allreduce", "bcast"], "transports": ["mpi"]},
    "launches": {"environments": ["slurm"], "ranks": [4], "blocks": BLOCKS, "aa_pair": True},
}

pytestmark = [pytest.mark.ranks, pytest.mark.alone, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def spec(slurm: Cluster) -> Path:
    """One short block of an MPI; by hand, blocks of all MPIs and three sizes."""
    changes = CHANGES
    if BLOCKS > 1:
        changes = {
            "factors": CHANGES["factors"] | {"sizes": "1KiB,16KiB,256KiB"},
            "launches": CHANGES["launches"] | {"mpis": list(MPIS)},
            "measurement": LONG,
        }
    path = slurm.folder / "turns.toml"
    path.write_text(tiny(**changes))
    return path


@pytest.mark.parametrize("turns", [True, pytest.param(False, marks=pytest.mark.rare)])
def test_arms_take_turns_over_nodes_where_the_site_lets_them(
    turns: bool, slurm: Cluster, spec: Path
) -> None:
    slurm.write_site("" if turns else "turns = false")
    out = slurm.folder / f"turns-{turns}"
    words = ("./inv", "run", "--experiment", str(spec), "--out", out.name)
    try:
        done = slurm.run(*words, timeout=800)
    finally:
        slurm.write_site()
    assert done.returncode == 0, done.stderr
    launches = [store.read_result(out, name) for name in sorted(store.finished(out))]
    for launch in launches:
        block = launch.launch.block
        company = (f"{block:04d}-host", f"{block:04d}-host-again")
        assert launch.company == (company if turns else ())
    if BLOCKS > 1:
        floor = floors(load(out).cells).largest
        most = max(awake(launches).values(), default=0.0)
        print(f"turns {turns}: noise floor {100 * floor:.1f} %, awake {100 * most:.2f} %")
