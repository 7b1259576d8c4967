"""Print the nodes of memkind's own HBM, without hbmcomm, for the CPUs that this process may use.

`python -m experiments.emulation.memkind_alone` prints a JSON list; [] where memkind has no HBM. A
process of its own, because memkind looks for memory once and keeps the answer.
"""

import ctypes
import json
import re
import sys
from pathlib import Path

LIBRARY = "libmemkind.so.0"
UNAVAILABLE = -20
"""MEMKIND_ERROR_MEMTYPE_NOT_AVAILABLE: no such memory. Any other refusal is a failure."""
PAGE = 4096  # bytes


def nodes() -> list[int]:
    """The nodes of a touched page of MEMKIND_HBW.

    Raises:
        SystemExit: memkind fails.
    """
    library = ctypes.CDLL(LIBRARY)
    kind = ctypes.c_void_p.in_dll(library, "MEMKIND_HBW")
    status = library.memkind_check_available(kind)
    if status == UNAVAILABLE:
        return []
    library.memkind_malloc.restype = ctypes.c_void_p
    library.memkind_malloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    address = None if status else library.memkind_malloc(kind, PAGE)
    if not address:
        sys.exit(f"memkind has no page of MEMKIND_HBW: status {status}")
    ctypes.memset(address, 1, PAGE)
    lines = Path("/proc/self/numa_maps").read_text().splitlines()
    *_, mapping = (line for line in lines if int(line.split()[0], 16) <= address)
    return sorted(int(node) for node in re.findall(r"\bN(\d+)=", mapping))


if __name__ == "__main__":
    try:
        print(json.dumps(nodes()))
    except OSError as error:  # no library
        sys.exit(str(error))
