"""A campaign's folder that someone else made is read as it should be, or refused in one message.

CI draws hostile folders for some seconds, a rare test for ten minutes, each time others. A failure
shows its seed, and is drawn first the next time, from the database of Hypothesis; elsewhere:

    HBMCOMM_TEST_SEED=SEED HBMCOMM_TEST_MINUTES=10 pytest -m rare tests/experiments/results
"""

import contextlib
import functools
import hashlib
import io
import json
import math
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from experiments.analysis import export
from experiments.analysis.campaign import Campaign
from experiments.analysis.reading import load
from experiments.model.errors import ExperimentsError
from experiments.results import store, typed, unarchive
from experiments.results.store import ResultsError

STORED = Path(__file__).parents[1] / "stored" / "format-2.tar.xz"
MINUTES = float(os.environ.get("HBMCOMM_TEST_MINUTES", "10"))  # of the rare test
SECONDS = 14.0  # of CI's test of folders; half of it for archives
RARELY = pytest.param(
    60 * MINUTES, marks=(pytest.mark.rare, pytest.mark.timeout(60 * MINUTES + 300))
)
EXAMPLES = 40  # of a seed
LAUNCH = "0000-docker-default-one"
HEADER, JSON, NPZ = "campaign.json", f"launches/{LAUNCH}.json", f"launches/{LAUNCH}.npz"
FAILED = "failed/0001-host.json"
ESCAPE = "\x1b]0;owned\x07"
Change = Callable[[Any], Any]


@functools.cache
def stored() -> dict[str, bytes]:
    """The files of a campaign with one launch, which is unpacked once."""
    with unarchive.opened(STORED) as whole:
        return {name: (whole / name).read_bytes() for name in (HEADER, JSON, NPZ)}


@contextlib.contextmanager
def campaign() -> Iterator[Path]:
    """A stored campaign with one launch and one that failed, in a folder of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "campaign")
        (folder / "launches").mkdir(parents=True)
        for file, content in stored().items():
            (folder / file).write_bytes(content)
        asked = {"arm": "host", "mpi": "openmpi", "ranks": 2}
        store.fail(folder, "0001-host", asked, "exit code 1")
        yield folder


def put(values: Any, path: tuple[Any, ...], value: Any) -> None:
    """Change one field."""
    for key in path[:-1]:
        values = values[key]
    values[path[-1]] = value


def change_json(file: Path, path: tuple[Any, ...], value: Any) -> None:
    """Change one field of a file."""
    values = json.loads(file.read_text())
    put(values, path, value)
    file.write_text(json.dumps(values))


def change_samples(folder: Path, content: bytes) -> None:
    """Put other samples into the launch, whose JSON then has their sum."""
    (folder / NPZ).write_bytes(content)
    change_json(folder / JSON, ("samples_sha256",), hashlib.sha256(content).hexdigest())


def packed(**arrays: Any) -> bytes:
    held = io.BytesIO()
    np.savez(held, **arrays)
    return held.getvalue()


def read(folder: Path) -> Campaign | str:
    """The campaign, which every reader takes; or the one message that refuses it."""
    try:
        loaded = load(folder)
        for form, raw in (("csv", False), ("csv", True), ("osu", False), ("openmetrics", False)):
            export.export(loaded, form, folder.parent / "exported", raw)
    except ExperimentsError as error:
        return str(error)
    assert all(math.isfinite(median) and median > 0 for median in loaded.cells["median_s"])
    return loaded


def refusal(folder: Path) -> str:
    message = read(folder)
    assert isinstance(message, str), "it was accepted"
    check_message(message, folder)
    return message


def check_message(message: str, folder: Path) -> None:
    """It is one line that names a file."""
    assert str(folder) in message
    assert message.isprintable()
    assert len(message) < 600


def test_the_campaign_that_is_changed_below_is_accepted() -> None:
    with campaign() as folder:
        assert isinstance(read(folder), Campaign)


def test_a_field_of_another_type_or_range_is_named() -> None:
    for file, path, value, text in (
        (HEADER, ("name",), "../../x", "name holds '../../x', and must be text"),
        (HEADER, ("name",), f"x{ESCAPE}", r"name holds 'x\x1b]0;owned\x07', with characters"),
        (HEADER, ("missing",), "abc", "missing holds 'abc', and must be a list"),
        (HEADER, ("machine",), [1], "machine holds [1], and must be a table"),
        (HEADER, ("command",), 5, "command holds 5, and must be a list"),
        (HEADER, ("seed",), True, "seed holds True, and must be a whole number"),
        (HEADER, ("schedule",), ["a"], "schedule[0] holds 'a', and must be a table"),
        (HEADER, ("experiment", "launches", "blocks"), 10**9, "blocks holds 1000000000"),
        (HEADER, ("experiment", "factors", "sizes"), [1] * 10**4, "a list, of 1000 at most"),
        (HEADER, ("experiment", "launches", "ranks"), [0], "ranks[0] holds 0"),
        (JSON, ("launch", "arm"), "../../x", "launch.arm holds '../../x'"),
        (JSON, ("launch", "arm"), "other", "launch holds the launch 0000-other"),
        (JSON, ("launch", "block"), 10**30, "no finite number of 64 bits"),
        (JSON, ("launch", "ranks"), 3, "cells[0] has 2 columns of samples, and not 3"),
        (JSON, ("launch", "environment"), "\n", "launch.environment holds '\\n'"),
        (JSON, ("cells", 0, "bytes"), math.nan, "cells[0].bytes holds nan"),
        (JSON, ("cells", 0, "bytes"), -5, "cells[0].bytes holds -5, and must be a whole number"),
        (JSON, ("cells", 0, "operation"), ["a"], "cells[0].operation holds ['a']"),
        (JSON, ("cells", 0, "samples"), "c9", "cells[0].samples names 'c9', which its .npz"),
        (JSON, ("cells", 0, "warmup"), 10**9, "rows of samples, 1000000000 of them to warm up"),
        (JSON, ("cells", 0, "group"), 0, "cells[0].group holds 0"),
        (JSON, ("cells",), {}, "cells holds {}, and must be a list"),
        (JSON, ("company",), 5, "company holds 5, and must be a list"),
        (JSON, ("environment",), {"hosts": []}, "environment lacks versions"),
        (JSON, ("environment", "versions"), {f"mpi{ESCAPE}": "5"}, "which is no line of text"),
        (JSON, ("ranks", 0, "asleep"), {"seconds": 1.0}, "ranks[0].asleep lacks cpu"),
        (JSON, ("ranks", 0, "asleep"), {"cpu": 1.0}, "ranks[0].asleep lacks seconds"),
        (JSON, ("ranks", 0, "asleep"), {"cpu": 1, "seconds": -1}, "asleep.seconds holds -1"),
        (FAILED, ("launch",), [1], "launch holds [1], and must be a table"),
        (FAILED, ("launch", "ranks"), "2", "launch.ranks holds '2', and must be a whole number"),
        (FAILED, ("launch", "arm"), {}, "launch.arm holds {}, and must be text"),
        (FAILED, ("reason",), None, "reason holds None, and must be text"),
        (JSON, ("environment", "kernel"), "\udcff", r"'\udcff', with characters"),
    ):
        with campaign() as folder:
            change_json(folder / file, path, value)
            message = refusal(folder)
            assert message.startswith(str(folder / file))
            assert text in message


def change_times(folder: Path, change: Change) -> None:
    """Change the times of the first cell."""
    arrays = store.read_samples(folder / NPZ)
    key = json.loads((folder / JSON).read_text())["cells"][0]["samples"]
    change_samples(folder, packed(**arrays | {key: change(arrays[key])}))


def test_samples_that_are_no_times_of_its_cells_are_named() -> None:
    """A rank may take no time where others take some, as in a table of IMB, which rounds."""
    for change, text in (
        (lambda times: -times, "negative ones"),
        (lambda times: times * np.nan, "NaN"),
        (lambda times: times + np.inf, "huge ones"),
        (lambda times: times.astype(complex), "no floating-point numbers"),
        (lambda times: np.array([{}], dtype=object), "Object arrays cannot be loaded"),
        (lambda times: times[:, 0], "holds no rows and columns"),
        (lambda times: times[:0], "holds no rows and columns"),
        (lambda times: times * 0, "that no operation can take"),
        (lambda times: times * 0 + 5e-324, "that no operation can take"),
        (lambda times: times * (times > times[-1:]), "that no operation can take"),
        (lambda times: times[:, :1], "has 1 columns of samples, and not 2"),
    ):
        with campaign() as folder:
            change_times(folder, change)
            assert text in refusal(folder)
    with campaign() as folder:
        change_times(folder, lambda times: times * [0, 1])
        assert isinstance(read(folder), Campaign)


def test_a_rank_may_lack_what_it_did_between_turns_and_the_load() -> None:
    for averages in ([], [0.5], [None, 0.5], [0.5, None], [None, None], [9.0, 9.0]):
        with campaign() as folder:
            change_json(folder / JSON, ("company",), [LAUNCH, "0000-host"])
            change_json(folder / JSON, ("ranks", 0, "asleep"), {})
            numbers = {"seconds": 1.0, "busy": 1.0, "stolen": 1.0, "own": 0.0}
            switches = {"voluntary": 0, "involuntary": 0}
            for rank in (0, 1):
                counted = numbers | switches | {"load": averages}
                change_json(folder / JSON, ("ranks", rank, "disturbance"), counted)
            loaded = read(folder)
            assert isinstance(loaded, Campaign), averages
            assert any("a hypervisor kept CPUs" in warning for warning in loaded.warnings)


def test_the_digest_of_a_base_image_is_a_known_field(tmp_path: Path) -> None:
    for digest in ("", "debian@sha256:" + "0" * 64):
        image = {"image": "sha256:1", "base": "debian", "inputs": "2", "base_digest": digest}
        with campaign() as folder:
            change_json(folder / HEADER, ("containers",), {"docker": {"openmpi": image}})
            assert "containers.docker.openmpi lacks python" in refusal(folder)
            image["python"] = "3.11"
            change_json(folder / HEADER, ("containers",), {"docker": {"openmpi": image}})
            assert isinstance(read(folder), Campaign)
            wrong = {"docker": {"openmpi": image | {"base_digest": [digest]}}}
            change_json(folder / HEADER, ("containers",), wrong)
            assert "containers.docker.openmpi.base_digest holds" in refusal(folder)
        del image["python"]
        lists = {"wheels": {}, "packages": {}, "dockerfile": "FROM x\n", "base_image": "sha256:3"}
        images = {"docker openmpi": image | lists}
        values = {"format": 2, "driver": {}, "mpis": {}, "images": images}
        values["system"] = {"python": "3.11", "packages": {}}
        path = tmp_path / "environment.json"
        path.write_text(json.dumps(values))
        assert typed.json_object(path, "environment") == values
        change_json(path, ("images", "docker openmpi", "base_digest"), 5)
        with pytest.raises(typed.Unfit, match="base_digest holds 5, and must be text"):
            typed.json_object(path, "environment")


def test_packed_samples_are_not_unpacked() -> None:
    with campaign() as folder:
        held = io.BytesIO()
        np.savez_compressed(held, c0=np.zeros((10**6, 2)))
        change_samples(folder, held.getvalue())
        assert "it is packed" in refusal(folder)


def replace_by(kind: str, path: Path) -> None:
    """Put something else in a file's place."""
    kept = path.rename(path.with_name("kept"))
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if kind == "device" else kept)


def test_what_is_no_plain_file_is_not_read() -> None:
    for file, kind in product((HEADER, JSON, NPZ, FAILED), ("pipe", "folder", "device", "link")):
        with campaign() as folder:
            replace_by(kind, folder / file)
            assert str(folder / file) in refusal(folder), kind


def test_json_without_end_is_one_message() -> None:
    digits, tables = '{"format": ' + "9" * 5000 + "}", '{"a":' * 900 + "1" + "}" * 900
    for text in ("[" * 10**5, digits, tables, "\0"):
        with campaign() as folder:
            (folder / JSON).write_text(text)
            assert str(folder / JSON) in refusal(folder)


VALUES = st.one_of(
    st.sampled_from(
        [
            *(None, True, -1, 0, 0.5, 10**30, math.nan, math.inf, "", "..", "../../x", ESCAPE),
            *("a\nb", "\udcff", "=1+1", "/dev/zero", "x" * 10**5, [], {}, [[]] * 50, [{}]),
        ]
    ),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
        max_leaves=12,
    ),
)
NUMBERS = st.floats(width=64) | st.sampled_from([0.0, -1e-9, 5e-324, 1e300, math.nan, math.inf])
KINDS = st.sampled_from(["f8", "f8", "f4", "i8", "c16", "U3", "f8,i4"])


def change_a_field(draw: Any, file: Path) -> None:
    """Walk to a field of a JSON file, and replace, remove or double it."""
    whole = json.loads(file.read_text())
    values = whole
    while True:
        keys = sorted(values) if isinstance(values, dict) else range(len(values))
        key = draw(st.sampled_from(list(keys)))
        inner = values[key]
        if not isinstance(inner, dict | list) or not inner or draw(st.integers(0, 3)) == 0:
            break
        values = inner
    what = draw(st.sampled_from(["replace", "replace", "remove", "add"]))
    if what == "replace":
        values[key] = draw(VALUES)
    elif what == "remove":
        del values[key]
    elif isinstance(values, dict):
        values[draw(st.text(max_size=9))] = draw(VALUES)
    else:
        values.append(draw(VALUES))
    file.write_text(json.dumps(whole))


def change_an_array(draw: Any, folder: Path) -> None:
    """Replace an array of times by one of another kind, shape or content."""
    arrays = store.read_samples(folder / NPZ)
    key = draw(st.sampled_from(sorted(arrays)))
    shape = draw(st.sampled_from([arrays[key].shape, (), (0,), (5,), (5, 1), (40, 2), (1, 2, 3)]))
    if draw(st.booleans()):
        made: Any = np.full(shape, draw(NUMBERS))
    else:
        made = np.zeros(shape, draw(KINDS))
    change_samples(folder, packed(**arrays | {key: made}))


def hostile_folder(data: st.DataObject) -> None:
    """A campaign with some changes is accepted as a right one, or refused in one message."""
    draw: Any = data.draw
    with campaign() as folder:
        for _ in range(draw(st.integers(1, 3))):
            file = draw(st.sampled_from([HEADER, JSON, JSON, NPZ, FAILED]))
            how = draw(st.sampled_from(["field", "field", "field", "bytes", "kind"]))
            if any(
                path.is_symlink() or not path.is_file()
                for path in (folder / JSON, folder / NPZ, folder / HEADER, folder / FAILED)
            ):
                break  # replaced before
            with contextlib.suppress(OSError, ValueError, ResultsError):  # changed twice
                if how == "kind":
                    kind = draw(st.sampled_from(["pipe", "folder", "device", "link"]))
                    replace_by(kind, folder / file)
                elif how == "bytes":
                    content = bytearray((folder / file).read_bytes())
                    content[draw(st.integers(0, len(content) - 1))] ^= draw(st.integers(1, 255))
                    (folder / file).write_bytes(content)
                    if file == NPZ:
                        change_samples(folder, bytes(content))
                elif file == NPZ:
                    change_an_array(draw, folder)
                else:
                    change_a_field(draw, folder / file)
        before = sorted(folder.rglob("*"))
        outcome = read(folder)
        if isinstance(outcome, str):
            check_message(outcome, folder)
        assert sorted(folder.rglob("*")) == before


def draw_for(seconds: float, hostile: Callable[[st.DataObject], None]) -> None:
    """Draw for some time, with a seed for each EXAMPLES; pytest shows the last one of a failure."""
    options = settings(
        max_examples=EXAMPLES,
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    test = options(given(st.data())(hostile))
    seed = int(os.environ.get("HBMCOMM_TEST_SEED", random.getrandbits(32)))
    began = time.monotonic()
    spent = longest = 0.0
    while spent + longest <= seconds:
        print(f"HBMCOMM_TEST_SEED={seed}")
        hypothesis.seed(seed)(test)()
        before, spent = spent, time.monotonic() - began
        longest, seed = max(longest, spent - before), random.getrandbits(32)


@pytest.mark.parametrize("seconds", [SECONDS, RARELY])
def test_hostile_folders_are_right_or_refused(seconds: float) -> None:
    draw_for(seconds, hostile_folder)
