"""Where memory cannot be had, the suite adds its own flag to what the library says."""

from types import SimpleNamespace

import pytest

import hbmcomm
from experiments.programs.measure.advice import advised

REFUSED = hbmcomm.KindUnavailable("binding was refused; in a container add --cap-add SYS_NICE")


@pytest.fixture
def hbm(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The machine's HBM as the library describes it."""
    found = SimpleNamespace(nodes=(1,))
    monkeypatch.setattr(hbmcomm, "topology", lambda: SimpleNamespace(hbm=found))
    return found


def test_without_hbm_it_is_emulation(hbm: SimpleNamespace) -> None:
    hbm.nodes = ()
    error = hbmcomm.KindUnavailable("hbw: no HBM")
    assert advised("hbw_all", error) == "hbw: no HBM. Here: ./inv run --emulate-hbw"
    assert advised("dax_kmem", error) == "hbw: no HBM"


def test_where_binding_is_refused_it_is_the_profile(hbm: SimpleNamespace) -> None:
    assert advised("hbw", REFUSED) == f"{REFUSED}. Here: ./inv run --profiles tuned"


def test_all_else_is_left_to_the_library(hbm: SimpleNamespace) -> None:
    for error in (hbmcomm.KindUnavailable("node 7"), hbmcomm.OutOfMemory("hbw: 3 GiB")):
        assert advised("hbw", error) == str(error)
