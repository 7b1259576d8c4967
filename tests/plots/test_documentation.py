"""docs/ says what the program does: fields, figures and the program that reads results by hand."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from experiments.analysis.reading import load
from experiments.catalogue import spec
from experiments.results import unarchive
from experiments.schedule import blocks
from plots import documentation
from plots.draw import PlotsError
from tests.campaigns import find

DOCS = Path(__file__).parents[2] / "docs"
STORED = Path(__file__).parents[1] / "experiments" / "stored" / "format-2.tar.xz"


def schema(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((DOCS / "schemas" / f"{name}.schema.json").read_text())
    return document


@pytest.mark.rare  # it draws every stored campaign
def test_every_made_part_is_what_invoke_docs_would_write(tmp_path: Path) -> None:
    shutil.copytree(DOCS, tmp_path / "docs")
    shutil.copy(DOCS.parent / "README.md", tmp_path)
    for path in documentation.refresh(tmp_path):
        shown = DOCS.parent / path.relative_to(tmp_path)
        assert path.read_bytes() == shown.read_bytes(), f"{shown} is out of date: ./inv docs"


def test_every_figure_and_sentence_of_a_measurement_has_its_stored_campaign() -> None:
    drawn_by_hand = DOCS / "architecture.md"
    pages = {DOCS.parent / "README.md", *DOCS.rglob("*.md")} - {drawn_by_hand}
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    stored = {path.name.partition(".")[0] for path in (DOCS / "data").glob("*.xz")}
    figures = re.findall(r"!\[[^]]*\]\((?:docs/)?([a-z_]+)-[\w-]+\.svg\)", text)
    assert len(figures) == text.count("![")
    assert stored == {*figures, *re.findall(r"<!-- measured: (\w+),", text)}


def test_the_page_of_experiments_has_all_of_them() -> None:
    page = (DOCS / "experiments.md").read_text(encoding="utf-8")
    assert documentation.filled("experiments.md", page) == page, "out of date: ./inv docs"
    assert all(f"| `{name}` |" in page for name in spec.names())


def test_a_part_that_nothing_makes_is_refused_by_its_page(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    page = tmp_path / "README.md"
    page.write_text("<!-- measured: paper, weather -->\n<!-- end -->\n", encoding="utf-8")
    with pytest.raises(PlotsError, match=r"README\.md has a part 'measured: paper, weather'"):
        documentation.refresh(tmp_path)
    page.write_text("<!-- glossary -->\nold\n<!-- end -->\n", encoding="utf-8")
    assert documentation.refresh(tmp_path) == [page]
    assert "| **arm** |" in page.read_text(encoding="utf-8")


def test_a_measured_sentence_keeps_what_stands_after_its_answer_and_the_conditions() -> None:
    campaign = replace(find(), conditions=("other processes ran on CPUs",))
    text = " ".join(documentation.MEASURED["transports"](campaign).split())
    assert "slower beyond the noise floor in 12, most in " in text
    assert "Intervals in brackets hold for all cells at once (95 %)." in text
    assert "Seen in 6 paired blocks; a claim needs 10." in text
    assert "2.2 % 4 to 64 KiB (18 A/A cells, so of 85 % of null cells)" in text
    assert text.endswith("Other processes ran on CPUs.")
    opening = " ".join(documentation.MEASURED["headline"](campaign).split())
    assert text.startswith(f"{opening.partition('. ')[0]}: slower beyond the noise floor")
    assert opening.endswith(". 6 blocks of arms in turns.")


@pytest.mark.parametrize("name", ["campaign", "launch", "environment"])
def test_a_schema_is_one_and_describes_every_field(name: str) -> None:
    Draft202012Validator.check_schema(schema(name))
    rows = documentation.table(schema(name)).splitlines()[2:]
    assert len(rows) > 10
    assert all(re.fullmatch(r"\| `[\w.\[\]]+` \| [a-z ]+ \| \S.* \|", row) for row in rows)


@pytest.mark.parametrize("name", spec.names())
def test_what_is_asked_of_a_campaign_fits_the_schemas(name: str) -> None:
    asked = spec.load(name)
    experiment = schema("campaign")["properties"]["experiment"]
    launches = schema("launch")["properties"]["launch"]
    first = blocks.schedule(asked, 1)[0].launches[0]
    for part, values in ((experiment, asked.to_dict()), (launches, first.to_dict())):
        Draft202012Validator(part).validate(json.loads(json.dumps(values)))


def test_a_stored_campaign_fits_the_schemas_and_another_file_does_not() -> None:
    with unarchive.opened(STORED) as folder:
        header = json.loads((folder / "campaign.json").read_text())
        Draft202012Validator(schema("campaign")).validate(header)
        check = Draft202012Validator(schema("launch"))
        launches = [json.loads(path.read_text()) for path in folder.glob("launches/*.json")]
    for launch in launches:
        check.validate(launch)
    assert not Draft202012Validator(schema("campaign")).is_valid(header | {"format": 3})
    assert not check.is_valid(launches[0] | {"weather": "fair"})
    del launches[0]["cells"][0]["warmup"]
    assert not check.is_valid(launches[0])


def test_the_program_of_the_page_reads_the_same_medians(capsys: pytest.CaptureFixture[str]) -> None:
    text = (DOCS / "results-format.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    with unarchive.opened(STORED) as folder:
        exec(program.replace("results/quick-20260102-030405", str(folder)), {})
        cells = load(folder).cells
    columns = ("arm", "operation", "transport", "bytes", "median_s")
    wanted = [" ".join(str(row[name]) for name in columns) for row in cells.to_dict("records")]
    printed = capsys.readouterr().out.splitlines()
    assert sorted(line for line in printed if " copy " not in line) == sorted(wanted)
