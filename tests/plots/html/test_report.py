"""The page of a campaign: what it says, and that it is whole by itself."""

import base64
import hashlib
import json
import re
from html import unescape
from pathlib import Path

import pytest
from markupsafe import escape

from experiments.analysis.reading import load
from experiments.results.unarchive import opened
from plots.contents import answers
from plots.html.report import command, commands, redraw, report
from plots.layout.labels import glossary
from tests.launched import made
from tests.sharing import MadeOnce

STORED = Path(__file__).parents[2] / "experiments" / "stored" / "format-2.tar.xz"


@pytest.fixture(scope="module")
def page(quick_page: Path) -> str:
    """The page of the quick campaign."""
    return quick_page.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def bare(dockerless_folder: Path, made_once: MadeOnce) -> str:
    """The page of a campaign without containers."""
    folder = made_once("bare-page", lambda folder: report(dockerless_folder, folder))
    return (folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def evidence(made_once: MadeOnce) -> str:
    """The page of a stored campaign with every kind of figure but placement's."""

    def make(folder: Path) -> None:
        with opened(STORED) as campaign:
            report(campaign, folder)

    return (made_once("stored-page", make) / "report.html").read_text(encoding="utf-8")


def text(page: str) -> str:
    """What a reader sees."""
    page = re.sub(r"<(style|script)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", page)))


def test_the_page_goes_into_a_folder_or_a_file_and_is_the_same_when_made_again(
    quick_page: Path, page: str, campaign_folder: Path, tmp_path: Path
) -> None:
    assert quick_page.name == "report.html"
    assert report(campaign_folder, tmp_path / "new" / "a.html") == tmp_path / "new" / "a.html"
    assert (tmp_path / "new" / "a.html").read_text(encoding="utf-8") == page


def test_each_question_is_answered_by_a_sentence_and_its_figure(
    page: str, campaign_folder: Path
) -> None:
    anchors = []
    for answer in answers(load(campaign_folder)):
        shown = re.escape(f"<dt>{escape(answer.question)}</dt>")
        shown += rf"\s*{re.escape(f'<dd>{escape(answer.sentence)}</dd>')}"
        shows = r'(?:\s*<dd[^>]*>[^<]*<(?:figure id|a href)="([^"]+)")?'
        match = re.search(shown + shows, page)
        assert match, answer.question
        anchors.append(match[1])
    assert anchors == [
        "speedup-2-ranks",
        "container-2-ranks",
        "#container-2-ranks",
        "#container-2-ranks",
        "#container-2-ranks",
        None,
        "others-2-ranks",
        "#others-2-ranks",
    ]


def test_what_leads_the_page_what_answers_rest_on_and_how_steady_it_was(evidence: str) -> None:
    parts = dict(re.findall(r'<section id="(\w+)"(.*?)</section>', evidence, re.DOTALL))
    figures = {name: re.findall(r'<figure id="([^"]+)">', part) for name, part in parts.items()}
    assert figures["answers"] == ["chain", "speedup-2-ranks", "container-2-ranks", "others-2-ranks"]
    assert figures["figures"] == ["times-2-ranks", "placement-map-2-ranks-packed"]
    assert figures["details"] == ["drift"]
    assert "<summary>The machine&#39;s pace, launch by launch</summary>" in parts["details"]
    assert "no rank used more than 1.4 % of a CPU (most: docker-default-one" in parts["details"]
    assert 'id="table-twins"' in parts["details"] and 'id="table-twins"' not in parts["tables"]


def test_no_figure_stands_twice_and_every_link_within_the_page_leads_somewhere(
    evidence: str, page: str, bare: str
) -> None:
    for html in (evidence, page, bare):
        anchors = re.findall(r'\bid="([^"]+)"', html)
        assert len(anchors) == len(set(anchors))
        assert set(re.findall(r'<a [^>]*href="#([^"]+)"', html)) <= set(anchors)


def test_of_several_mpis_the_first_figure_is_open_and_the_others_are_folded(
    arms_page: Path,
) -> None:
    figure = r'(<details>\s*<summary>[^<]*</summary>\s*)?<figure id="others-(\w+)'
    figures = re.findall(figure, arms_page.read_text(encoding="utf-8"))
    folded = [(name, bool(details)) for details, name in figures]
    assert folded == [("openmpi", False), ("mpich", True)]


def test_every_figure_and_table_is_on_the_page(page: str, drawn: list[Path]) -> None:
    for path in drawn:
        if path.suffix == ".svg":
            assert f'<figure id="{path.stem}">' in page
        if path.suffix == ".csv":
            assert f'id="table-{path.stem}"' in page
    assert page.count('role="img"') == page.count("<figure id=") > 0


def test_a_bench_shows_peers_over_direct_in_its_answer_and_times_below(
    bench_folder: Path, tmp_path: Path
) -> None:
    page = report(bench_folder, tmp_path).read_text(encoding="utf-8")
    figures = re.findall(r'<(figure id|section id|a href)="#?(bench-[^"]+|figures)"', page)
    assert ("a href", "bench-ratios-2-ranks") in figures
    figures = [figure for figure in figures if figure[0] != "a href"]
    assert figures == [
        ("figure id", "bench-ratios-2-ranks"),
        ("section id", "figures"),
        ("figure id", "bench-times-2-ranks"),
    ]
    assert '<figure id="drift">' not in page


def test_the_page_says_what_is_left_out_and_how_far_its_p_can_reach(page: str) -> None:
    assert "Placement of ranks and buffers is left out: this campaign varies neither" in text(page)
    assert "Quick campaign: 2 paired blocks, signed-rank p not below 0.500" in text(page)


def test_every_warning_is_on_the_page(page: str, campaign_folder: Path) -> None:
    warnings = load(campaign_folder).warnings
    assert warnings
    for warning in warnings:
        assert warning in text(page)


def test_confounders_come_before_what_is_the_same(page: str) -> None:
    message = text(page)
    assert "seccomp disabled disabled filter filter" in message
    assert message.index("seccomp disabled") < message.index("versions.mpi Open MPI v5.0.11")


def test_the_command_can_be_copied(page: str) -> None:
    assert "<code>./inv run --experiment quick</code>" in page
    assert command(["./inv", "run", "a b"]) == "./inv run 'a b'"
    started = ["/venv/invoke/__main__.py", "--search-root", "/here", "run", "--blocks", "2"]
    assert command(started) == "./inv run --blocks 2"


def test_the_page_says_how_to_draw_it_again(page: str) -> None:
    assert "<code>./inv report --results results/quick</code>" in page
    assert redraw(["invoke", "run", "--out", "a b"], "x") == "./inv report --results 'a b'"
    assert redraw(["invoke", "run", "--out"], "x") == "./inv report --results results/x"


def test_what_a_campaign_recorded_cannot_break_the_page(page: str) -> None:
    assert "Example &lt;CPU&gt; &amp; co" in page
    assert "<CPU>" not in page


def test_a_missing_arm_is_reported_in_the_answer_the_figures_and_the_list(bare: str) -> None:
    message = text(bare)
    assert "Not measured. docker: no engine answers" in message
    assert "Missing arms docker: no engine answers" in message
    assert "Not measured: docker" in message


def test_each_arm_tells_what_it_started(page: str) -> None:
    message = text(page)
    assert "Open MPI, Docker, tuned, one container docker run 000" in message
    assert message.index("Open MPI, host host run") < message.index(
        "Docker, default, one container dock"
    )


def test_commands_are_the_first_of_each_arm_and_mpi() -> None:
    launches = [
        made({"launch": {"mpi": mpi, "arm": arm}, "command": f"{mpi} {arm} {number}"})
        for number in range(2)
        for mpi in ("mpich", "openmpi")
        for arm in ("docker-tuned-one", "host")
    ]
    assert commands([*launches, made({"launch": {"mpi": "impi"}})]) == [
        ("Open MPI, host", "openmpi host 0"),
        ("Open MPI, Docker, tuned, one container", "openmpi docker-tuned-one 0"),
        ("MPICH, host", "mpich host 0"),
        ("MPICH, Docker, tuned, one container", "mpich docker-tuned-one 0"),
    ]


def test_the_data_paths_are_a_table_of_mpis_and_arms(page: str) -> None:
    section = page[page.index('<section id="paths"') : page.index('<section id="measured"')]
    assert section.count("<tr>") == 1 + 4
    assert "refused (EPERM)" in section


def test_only_the_pages_own_script_may_run(page: str) -> None:
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    (script,) = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    hashed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{hashed}';" in policy
    assert "default-src 'none'" in policy and "unsafe-eval" not in policy
    assert not re.search(r"\son\w+=", page)


def test_a_row_and_a_mark_name_a_cell_whose_samples_the_page_holds(page: str) -> None:
    (data,) = re.findall(r'<script type="application/json" id="samples">(.*?)</script>', page)
    cells = set(json.loads(data)["cells"])
    assert cells == set(re.findall(r'<tr data-cell="(\d+)">', page))
    marks = re.findall(r'<g id="container-[^"]*" data-cell="(\d+)">', page)
    assert set(marks) == cells


def test_without_containers_there_are_no_samples_to_open(bare: str) -> None:
    assert "<dialog" not in bare and 'id="samples"' not in bare


def test_the_glossary_is_on_the_page(page: str) -> None:
    section = page[page.index('<section id="glossary"') :]
    for word, meaning in glossary().items():
        assert f"<dt>{escape(word)}</dt>" in section
        assert f"<dd>{escape(meaning)}</dd>" in section


def test_tables_have_heads_with_scope(page: str) -> None:
    assert set(re.findall(r"<th\b( scope=\"(?:col|row)\")?", page)) == {
        ' scope="col"',
        ' scope="row"',
    }


def test_an_emulated_machine_is_the_first_word_and_places_are_the_first_answer_and_figure(
    emulated_folder: Path, tmp_path: Path
) -> None:
    page = report(emulated_folder, tmp_path).read_text(encoding="utf-8")
    message = text(page)
    warning = "Emulated machine knl-snc4-flat (tcg): where ranks and pages are is real"
    assert (
        message.index(warning)
        < message.index("Where was every rank")
        < message.index("How fast is it?")
    )
    figures = re.findall(r'<figure id="([^"]+)">', page)
    assert figures[0] == "placement-map-2-ranks-packed"
    assert "is left out: what a container costs in time is not to be had" in message
    assert "faster beyond the noise floor" not in message
    assert 'id="table-pages"' in page
