"""Values that ranks exchange through torch's store, which any user may write into."""

import pickle
import subprocess
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hbmcomm import HbmcommError
from hbmcomm.memory.consensus import Problem
from hbmcomm.memory.handshake import Answer, Offer
from hbmcomm.memory.segment import Locator
from hbmcomm.transports.native import setting

distributed = pytest.importorskip("torch.distributed", reason="torch is not installed")

SOON = timedelta(seconds=20)
LOCATOR = Locator("memfd", "/proc/7/fd/3", 1, 2, "hbmcomm.0123456789abcdef", 2**21)
VALUES = [
    Answer(Offer(LOCATOR, LOCATOR, 4096, (4, 5), 7), setting(), None, 2**30, False),
    Answer(None, None, Problem("no memory", "OutOfMemory"), 0, False),
    None,
    Problem("too long", None, True),
    ((12345, 0), None),
    (None, Problem("no compiler", "HbmcommError")),
    ((12345, "net:[4026531840]"), "0123456789abcdef"),
]


class Evil:
    def __init__(self, proof: Path) -> None:
        self._proof = proof

    def __reduce__(self) -> tuple[Any, ...]:
        return subprocess.call, (["touch", str(self._proof)],)


def gather(store: Any, rank: int) -> Any:
    from hbmcomm.torch.rendezvous import Exchange

    return Exchange(store, rank, 2, SOON)


def test_both_ranks_get_the_values_of_both() -> None:
    store = distributed.HashStore()
    seen: list[list[Any]] = [[], []]

    def run(rank: int) -> None:
        own = gather(store, rank)
        seen[rank] = [own(value) for value in VALUES]

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [[[value] * 2 for value in VALUES]] * 2


def test_a_pickle_of_another_user_is_not_run(tmp_path: Path) -> None:
    store, proof = distributed.HashStore(), tmp_path / "proof"
    store.set("0/1", pickle.dumps(Evil(proof)))
    with pytest.raises(HbmcommError, match=r"holds of rank 1 .*is not JSON.*let nobody else reach"):
        gather(store, 0)(VALUES[0])
    assert not proof.exists()


@pytest.mark.parametrize("line", ["null", "[]", "[1, 2]", '["x", "SystemExit"]', "{}", "1e9"])
def test_a_value_of_another_type_is_an_error_that_names_the_rank(line: str) -> None:
    store = distributed.HashStore()
    store.set("0/1", line)
    with pytest.raises(HbmcommError, match="holds of rank 1 "):
        gather(store, 0)(VALUES[0])


def test_no_exchange_sends_what_the_others_would_not_read() -> None:
    with pytest.raises(TypeError, match="ranks exchange no values such as"):
        gather(distributed.HashStore(), 0)(["a list"])
