"""Where memory is unavailable, the suite adds its own flag to the library's error."""

from types import SimpleNamespace

import pytest

import hbmcomm
from experiments.programs.measure.advice import advised

NONE = hbmcomm.KindUnavailable("hbw: no HBM")
REFUSED = hbmcomm.KindUnavailable("binding was refused; in a container add --cap-add SYS_NICE")


@pytest.mark.parametrize(
    ("hbm", "kind", "error", "advice"),
    [
        ((), "hbw_all", NONE, ". Here: ./inv run --emulate-hbw"),
        ((), "dax_kmem", NONE, ""),
        ((1,), "hbw", REFUSED, ". Here: ./inv run --profiles tuned"),
        ((1,), "hbw", hbmcomm.KindUnavailable("node 7"), ""),
        ((1,), "hbw", hbmcomm.OutOfMemory("hbw: 3 GiB"), ""),
    ],
)
def test_the_flag_that_may_help_follows_what_the_library_says(
    hbm: tuple[int, ...], kind: str, error: Exception, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = SimpleNamespace(hbm=SimpleNamespace(nodes=hbm))
    monkeypatch.setattr(hbmcomm, "topology", lambda: machine)
    assert advised(kind, error) == f"{error}{advice}"
