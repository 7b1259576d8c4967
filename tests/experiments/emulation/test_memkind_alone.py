"""memkind's own answers, on this machine: none by itself, node 0 where a variable names it."""

import pytest

import hbmcomm
from experiments.emulation import memkind_alone
from experiments.emulation.memkind_rows import UNAVAILABLE
from tests.experiments.emulation.kernel_view import needs_numa_maps

pytestmark = [
    pytest.mark.skipif(
        hbmcomm.memkind_version() is None,
        reason="libmemkind is not installed (apt-get install libmemkind0)",
    ),
    needs_numa_maps,
]


def test_what_it_is_reported_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMKIND_HBW_NODES", "0")
    found = memkind_alone.ask()
    assert list(found) == list(memkind_alone.KINDS)
    assert found["hbw"] == {"nodes": [0], "policy": "bind:0"}


def test_a_refusal_is_in_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMKIND_HBW_NODES", raising=False)
    if hbmcomm.topology().hbm.nodes:
        pytest.skip("this machine has HBM")
    answer = memkind_alone.ask()["hbw"]
    assert "not available" in answer["error"]
    assert answer["status"] == UNAVAILABLE


def test_without_the_library_that_is_the_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(memkind_alone, "LIBRARY", "libmemkind.so.none")
    memkind_alone.main()
    assert "libmemkind.so.none" in capsys.readouterr().out
