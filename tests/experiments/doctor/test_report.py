import json

from experiments.doctor import report
from experiments.doctor.checks import Finding

FOUND = [
    Finding("MPI", "Open MPI v5.0.11", ok=True),
    Finding("memkind", "not installed", False, "no kinds", f"apt-get install {'x' * 120}"),
    Finding("turbo", "not shown by this machine"),
]


def test_json_holds_every_field():
    names = ("name", "value", "ok", "lack", "remedy")
    remedy = f"apt-get install {'x' * 120}"
    assert [tuple(row[name] for name in names) for row in json.loads(report.to_json(FOUND))] == [
        ("MPI", "Open MPI v5.0.11", True, None, None),
        ("memkind", "not installed", False, "no kinds", remedy),
        ("turbo", "not shown by this machine", None, None, None),
    ]


def test_the_table_marks_each_row_and_keeps_commands_whole(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert report.to_table(FOUND).splitlines() == [
        "       what     found",
        "ok     MPI      Open MPI v5.0.11",
        "lacks  memkind  not installed",
        "-      turbo    not shown by this machine",
        "",
        "memkind: no kinds",
        f"    apt-get install {'x' * 120}",
    ]
