"""Sizes, rates and rank counts as users write them, and numbers as they read them. Pure.

Independent of the locale.
"""

import math
import re
from collections.abc import Iterable, Mapping

from experiments.model.errors import SpecError, unknown

UNITS = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
RATE_UNITS = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB")
TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
NOTHING = "–"
"""In place of a number that does not exist."""
MINUS = "\N{MINUS SIGN}"
RANKS_PER_CORE = 8  # more than this and every rank mostly waits for its turn


def counted(count: int, thing: str, plural: str = "s") -> str:
    """ "1 paired block", "6 paired blocks"."""
    return f"{count} {thing}{plural * (count != 1)}"


def list_text(numbers: Iterable[int]) -> str:
    """Whole numbers from 0 in the kernel's list format: "0-3,8"; "none"."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{run[0]}-{run[-1]}" if run[1:] else str(run[0]) for run in runs) or "none"


def check_rank_counts(counts: Iterable[int], cores: int, machine: str = "this machine") -> None:
    """Refuse more ranks than a machine's cores can take turns on (RANKS_PER_CORE each)."""
    limit = cores * RANKS_PER_CORE
    worst = max(counts)
    if worst > limit:
        raise SpecError(
            f"{worst} ranks were asked for; {machine} has {cores} cores and can take turns on "
            f"{limit} ranks at most: pass --ranks {min(limit, max(2, cores))}"
        )


def parse_size(text: str) -> int:
    """Bytes of "64", "1KiB", "16 MiB" or "2g": all prefixes are powers of 1024, in any case."""
    match = re.fullmatch(r"\s*(\d{1,18})\s*(?:([kmgt])i?)?b?\s*", text, re.IGNORECASE)
    if not match:
        raise SpecError(
            f"size {text[:80]!r} does not parse; write a whole number and a unit, if any: "
            "64, 1KiB, 16MiB, 2GiB"
        )
    return int(match[1]) << 10 * " kmgt".index((match[2] or " ").lower())


def parse_sizes(text: str) -> tuple[int, ...]:
    """Bytes of "1KiB:64MiB" (doubling), "1KiB:64MiB:4" (quadrupling) or "1KiB,1MiB"."""
    if ":" not in text:
        return tuple(parse_size(part) for part in text.split(","))
    parts = text.split(":")
    step = parts[2] if len(parts) > 2 else "2"
    if len(parts) > 3 or not re.fullmatch(r"\d{1,18}", step) or int(step) < 2:
        raise SpecError(f"sizes {text[:80]!r} do not parse; write FIRST:LAST or FIRST:LAST:FACTOR")
    first, last = parse_size(parts[0]), parse_size(parts[1])
    if not 0 < first <= last:
        raise SpecError(f"sizes {text!r} run from {first} to {last} bytes; put the smaller first")
    sizes = [first]
    while sizes[-1] * int(step) <= last:
        sizes.append(sizes[-1] * int(step))
    return tuple(sizes)


def parse_names(what: str, given: Iterable[str], names: Mapping[str, str]) -> tuple[str, ...]:
    """What names mean, in any case, each once.

    Args:
        what: the flag or the key, as messages name it.
        names: {meaning: the name that messages show}; either is understood.
    """
    known = {spelling.lower(): name for name, shown in names.items() for spelling in (name, shown)}
    meanings = []
    for name in given:
        if name.strip().lower() not in known:
            raise SpecError(unknown(what, name, names.values()))
        meanings.append(known[name.strip().lower()])
    return tuple(dict.fromkeys(meanings))


def parse_ranks(text: str) -> list[int]:
    """Rank counts of "2,4,8"."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise SpecError(f"ranks {text!r} do not parse; write whole numbers: 2,4,8") from None


def parse_rate(text: str) -> float:
    """Bits per second of "1gbit" or "2.5mbit", as tc(8) writes rates."""
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)([kmg]?bit)", text)
    if not match or not float(match[1]):
        raise SpecError(
            f"rate {text!r} does not parse; write a number and one of {', '.join(RATE_UNITS)}"
        )
    return float(match[1]) * RATE_UNITS[match[2]]


def rate_text(bits: float) -> str:
    """A rate of so many bits per second, as parse_rate() reads it."""
    unit = [name for name, size in RATE_UNITS.items() if size <= bits][-1]
    return f"{bits / RATE_UNITS[unit]:g}{unit}"


def size_text(count: int) -> str:
    """A size as parse_size() reads it, in the largest unit that divides it: "64 KiB", "1500 B"."""
    fitting = [unit for unit, size in UNITS.items() if unit and count % size == 0]
    unit = fitting[-1] if count else "B"
    return f"{count // UNITS[unit]} {unit}"


def amount_text(number: int, unit: str) -> str:
    """ "64 KiB", "8 ranks", "50 us", "1": a number of bytes, of another unit or of none."""
    return size_text(number) if unit == "bytes" else f"{number} {unit}".rstrip()


def seconds_text(seconds: float) -> str:
    """Three significant digits and a unit: "12.3 µs"; a dash for NaN."""
    if not math.isfinite(seconds):
        return NOTHING
    size, unit = next(((s, u) for s, u in TIMES if abs(seconds) >= s * 0.9995), TIMES[-1])
    return f"{significant(seconds / size)} {unit}"


def significant(value: float, digits: int = 3) -> str:
    """A plain decimal with so many significant digits, never in powers of ten."""
    if not math.isfinite(value):
        return NOTHING
    if value == 0:
        return "0"
    exponent = int(f"{value:.{digits - 1}e}".split("e")[1])  # of the rounded value: 9.996 is 10.0
    return f"{value:.{max(0, digits - 1 - exponent)}f}"


def ratio_text(ratio: float) -> str:
    """Two decimals: "1.04"; from 10 on three digits: "12.3"; below 0.1 one: "0.004"; NaN: dash."""
    if not math.isfinite(ratio):
        return NOTHING
    if abs(ratio) < 0.095:
        return significant(ratio, 1)
    if abs(ratio) < 9.995:
        return f"{ratio:.2f}"
    return f"{ratio:.1f}" if abs(ratio) < 99.95 else f"{ratio:.0f}"


def percent_text(share: float, decimals: int = 1) -> str:
    """ "3.1 %" of 0.031; a dash for NaN."""
    return f"{100 * share:.{decimals}f} %" if math.isfinite(share) else NOTHING


def share_text(share: float | None) -> str:
    """ "12.5 %"; less than all is never 100 %, more than nothing never 0 %; a dash for none."""
    if share is None or math.isnan(share):
        return NOTHING
    tenths = round(1000 * share)
    if tenths == 1000 and share < 1:
        return "> 99.9 %"
    return "< 0.1 %" if tenths == 0 and share > 0 else f"{tenths / 10:g} %"


def spans(values: Iterable[int]) -> str:
    """ "0–3, 8" of 0, 1, 2, 3, 8; "none" of none. Not for numbers below 0."""
    return list_text(set(values)).replace("-", "–").replace(",", ", ")


def ranks_text(ranks: int) -> str:
    """ "1 rank", "16 ranks"."""
    return f"{ranks} rank" if ranks == 1 else f"{ranks} ranks"


def bytes_text(count: int) -> str:
    """ "1 KiB", "16 MiB"; a count that is no whole multiple keeps two decimals at most."""
    power = min(max(0, int(count).bit_length() - 1) // 10, len(_BINARY) - 1)
    return f"{round(count / 1024**power, 2):g} {_BINARY[power]}"


def bandwidth_text(bytes_per_second: float) -> str:
    """ "12.3 GB/s" in powers of ten, as bandwidths are quoted; a dash for NaN."""
    if not math.isfinite(bytes_per_second):
        return NOTHING
    return f"{significant(bytes_per_second / 1e9)} GB/s"


def tick_text(seconds: float) -> str:
    """A decade on a time axis: "10 µs"."""
    size, unit = next(((s, u) for s, u in TIMES if seconds >= s * 0.9995), TIMES[-1])
    return f"{round(seconds / size, 3):g} {unit}"


def interval_text(low: float, high: float) -> str:
    """ "0.98 to 1.10", or a dash where there is no interval."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return NOTHING
    return f"{ratio_text(low)} to {ratio_text(high)}"


def p_text(p: float) -> str:
    """Three decimals; "< 0.001" below."""
    if not math.isfinite(p):
        return NOTHING
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def bound_text(low: float, high: float) -> str:
    """ "-0.8 % to +1.3 %" of 0.992 and 1.013: how much longer something takes, at least and at
    most; a dash where there is no interval."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return NOTHING
    return " to ".join(_signed(end - 1) for end in (low, high))


def _signed(share: float) -> str:
    """ "+1.3 %", "-0.8 %", "0 %", "+73 %"."""
    percent = 100 * share
    text = f"{percent:+.{1 if abs(percent) < 9.95 else 0}f}"
    return f"{'0' if float(text) == 0 else text.replace('-', MINUS)} %"
