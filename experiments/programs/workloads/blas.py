"""The threads of NumPy's matrix products: OpenBLAS starts one for each CPU, and a rank has one CPU.

Variables of the environment count only before NumPy is imported, so the loaded library is called.
"""

import contextlib
import ctypes
from pathlib import Path

_SETTERS = ("scipy_openblas_set_num_threads64_", "openblas_set_num_threads")
"""In the OpenBLAS of NumPy's wheels, and in others."""


def use_one_thread() -> bool:
    """Have this process multiply matrices on its own thread; whether there is an OpenBLAS."""
    mapped = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    files = {line.split()[-1] for line in mapped if "openblas" in line}
    for file in files:
        library = ctypes.CDLL(file)
        for name in _SETTERS:
            with contextlib.suppress(AttributeError):
                getattr(library, name)(1)
                return True
    return False
