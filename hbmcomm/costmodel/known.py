"""Machines and networks with a name, and where their figures come from.

- Knights Landing: STREAM on a 68-core one in flat mode, knl_stream.csv, measured by Karl Rupp
  (github.com/karlrupp/knl-stream-benchmark). All other memories here are limits, nothing measured.
- A thread's own limit is Little's law: lines in flight x 64 bytes / latency, once for reading and
  once for writing. Lines in flight, and latencies between cores, are those of docs/costs.md, which
  names their sources; latencies of memories are assumptions.
- Xeon Max 9480: peaks of its channels, two of DDR5-4800 and a stack of HBM2e in each of 4 nodes.
- GH200: LPDDR5X 486 GB/s by STREAM; its CPUs reach HBM3 through NVLink-C2C, 297 GB/s one way and
  375 GB/s the other (Schieffer et al., ICPP 2024, arXiv:2407.07850), so a copy gets 2 x 297 GB/s.
- Networks: the bandwidth is the name's. Times of a short message are assumptions: TCP over Ethernet
  for 10 Gbit/s, InfiniBand for the others.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from importlib import resources

from hbmcomm.costmodel.machine import CostModelError, Machine, Memory, Network

LINE = 64
GB = 1e9


def known(name: str) -> Machine:
    """A machine with a name.

    Raises:
        CostModelError: none has this name.
    """
    if name not in MACHINES:
        raise CostModelError(f"unknown machine {name!r}; name one of {', '.join(MACHINES)}")
    return MACHINES[name]


def network(name: str) -> Network:
    """A network with a name.

    Raises:
        CostModelError: none has this name.
    """
    if name not in NETWORKS:
        raise CostModelError(f"unknown network {name!r}; name one of {', '.join(NETWORKS)}")
    return NETWORKS[name]


def _stream() -> Iterator[tuple[int, float, float]]:
    """Threads, and bytes per second in DDR4 and in MCDRAM."""
    text = resources.files("hbmcomm.costmodel").joinpath("knl_stream.csv").read_text("utf-8")
    for row in csv.DictReader(text.splitlines()):
        yield (
            int(row["threads"]),
            GB * float(row["ddr4_gb_per_s"]),
            GB * float(row["mcdram_gb_per_s"]),
        )


def _of_a_core(flight: int, nanoseconds: float) -> float:
    """Bytes that a core reads and writes per second with so many lines in flight."""
    return 2 * flight * LINE / (nanoseconds * 1e-9)


def _limited(own: float, most: float, cores: int) -> Memory:
    """Each thread gets its own limit until all together reach the most."""
    knee = max(1, math.floor(min(most / own, cores)))
    threads = sorted({1, min(knee, cores), min(knee + 1, cores), cores})
    return Memory(tuple(threads), tuple(min(count * own, most) for count in threads))


_THREADS, _DDR4, _MCDRAM = zip(*_stream(), strict=True)

MACHINES: Mapping[str, Machine] = {
    "knl": Machine(
        name="Knights Landing",
        cores=68,
        nodes=4,
        cache_bytes=34 * 2.0**20,
        cache=_limited(_of_a_core(12, 91), math.inf, 68),
        memories={"regular": Memory(_THREADS, _DDR4), "hbw": Memory(_THREADS, _MCDRAM)},
        latency=91e-9,
    ),
    "xeon-max": Machine(
        name="Xeon Max 9480",
        cores=56,
        nodes=4,
        cache_bytes=112.5 * 2.0**20,
        cache=_limited(_of_a_core(16, 51), math.inf, 56),
        memories={
            "regular": _limited(_of_a_core(16, 110), 4 * 76.8 * GB, 56),
            "hbw": _limited(_of_a_core(16, 130), 4 * 409.6 * GB, 56),
        },
        latency=51e-9,
    ),
    "gh200": Machine(
        name="GH200",
        cores=72,
        nodes=1,
        cache_bytes=114 * 2.0**20,
        cache=_limited(_of_a_core(32, 46), math.inf, 72),
        memories={
            "regular": _limited(_of_a_core(32, 200), 486 * GB, 72),
            "hbw": _limited(_of_a_core(32, 800), 2 * 297 * GB, 72),
        },
        latency=46e-9,
    ),
}

NETWORKS: Mapping[str, Network] = {
    "10gbit": Network(15e-6, 10e9 / 8),
    "100gbit": Network(1.5e-6, 100e9 / 8),
    "400gbit": Network(1.2e-6, 400e9 / 8),
}
