"""A job that goes on with a campaign is given again what chooses its programs."""

from pathlib import Path

import pytest

from commands import clusters
from experiments.catalogue import spec
from experiments.cluster import allocation, sites
from experiments.results import store
from experiments.results.store import ResultsError


def test_the_job_of_a_resumed_campaign_repeats_what_its_user_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = tmp_path / "sites.toml"
    tables.write_text("[knl]\n[xeon]\n")
    monkeypatch.setattr(sites, "path", lambda: tables)
    monkeypatch.setattr(allocation, "held", lambda environment: False)
    out, python = tmp_path / "out", "/site/env"
    asked = spec.restrict(spec.load("quick"), environments="slurm", blocks=1).to_dict()
    begun = {"name": "q", "experiment": asked, "seed": 1, "schedule": []}
    store.create(out, {**begun, "site": "knl", "python": python})
    again = {"python": python, "site": "knl", "base": ""}
    assert clusters.resume(out, "", True, again)
    shown = capsys.readouterr().out
    assert f"./inv run --resume --python {python} --site knl --out {out}" in shown
    with pytest.raises(ResultsError, match="begun with --site 'knl'"):
        clusters.resume(out, "", True, {**again, "site": ""})
