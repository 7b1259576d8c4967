"""The folder of a launch as its programs see it: launch.json to read, the result to write.

Imports no MPI: programs that are no ranks use it too.
"""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments.model.launch import FORMAT, Launch


def read_launch(folder: Path) -> Launch:
    """What is to be measured."""
    return Launch.from_dict(read_json(folder / "launch.json"))


def read_json(path: Path) -> dict[str, Any]:
    """A file that another process of this launch, or its driver, wrote."""
    values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return values


def write_result(
    folder: Path,
    launch: Mapping[str, Any],
    began: float,
    samples: Mapping[str, Any],
    **parts: Any,
) -> None:
    """Write result.json and samples.npz.

    Args:
        launch: as plain values.
        began: seconds since the epoch.
        samples: arrays by the keys that the cells name.
        parts: what else result.json holds: environment, ranks, cells ...
    """
    times = {"began": began, "seconds": time.time() - began}
    np.savez(folder / "samples.npz", **samples)
    result = {"format": FORMAT, "launch": launch, **parts, **times}
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
