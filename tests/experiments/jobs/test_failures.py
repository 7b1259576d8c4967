"""Why a launch failed, as its error message repeats the launch's log."""

from pathlib import Path

import pytest

from experiments.jobs import failures

REPORT = "rank 2: SystemExit: launch a asks for 4 ranks"


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        pytest.param([REPORT, *map(str, range(30))], [REPORT, "...", "18"], id="far up"),
        pytest.param([*map(str, range(30)), REPORT, "30"], ["20", "21"], id="in the last lines"),
        pytest.param(
            [REPORT, *map(str, range(30)), REPORT.replace("2:", "3:")], ["19"], id="from another"
        ),
        pytest.param([*map(str, range(30))], ["18", "19"], id="without"),
    ],
)
def test_what_ranks_report_is_shown_whatever_libraries_print_after_it(
    tmp_path: Path, lines: list[str], shown: list[str]
) -> None:
    log = tmp_path / "a.log"
    log.write_text("\n".join(lines))
    _, *output, _ = str(failures.failed("a", 1, log)).splitlines()
    assert [line.strip() for line in output][: len(shown)] == shown
    assert sum(REPORT[8:] in line for line in output) == (REPORT in lines)


def test_a_full_disk_explains_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "a.log"
    log.write_text("prterun noticed that\n" * 13)
    monkeypatch.setattr(failures, "disk_full", lambda folder: True)
    text = str(failures.failed("a", 1, log))
    assert text.startswith(f"launch a failed: No space left on device ({tmp_path}); make room.")
    assert "prterun" not in text and len(text.splitlines()) == 1
