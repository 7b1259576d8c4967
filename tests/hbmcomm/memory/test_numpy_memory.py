"""Inside `numpy_memory` NumPy itself allocates in a kind of memory; refusals: test_blocks.py."""

import numpy as np
import pytest

import hbmcomm
from hbmcomm import KindUnavailable

INSIDE = """
import gc
import numpy as np
import hbmcomm
from hbmcomm.memory import kernel
handler = np._core.multiarray.get_handler_name
def now():
    return handler(np.empty(1))
print("# every array made inside is in the kind")
with hbmcomm.numpy_memory("hbw") as kind:
    made = [np.empty(10), np.zeros((3, 4)), np.arange(5) * 2, np.array("text"), np.ones(0)]
    print(kind.name, {handler(array) for array in made}, made[2].tolist(), made[1].sum())
print(now())
print("# their source is memkind through views and after the context")
outside = np.ones(9)
with hbmcomm.numpy_memory("hbw"):
    kept = np.ones((30, 4))
    plain, own = outside[1:], hbmcomm.empty(3, kind="regular", nodes=[0])
    views = [kept, kept[3:].T, np.asarray(kept.reshape(-1)), np.ma.array(kept)]
    print({hbmcomm.source(view) for view in views}, hbmcomm.source(plain), hbmcomm.source(own))
del kept
print({hbmcomm.source(view) for view in views}, hbmcomm.source(np.ones(3)))
print("# arrays outlive the context and are freed by their own allocator")
with hbmcomm.numpy_memory("hbw"):
    kept = np.full(1_000_000, 7.0)
gc.collect()
view = kept[10:20]
print(kernel.policy_of(kept.ctypes.data), handler(kept))
del kept
gc.collect()
print(view.sum())
del view
for _ in range(1000):
    with hbmcomm.numpy_memory("hbw"):
        np.ones(10_000)
print("# contexts nest")
with hbmcomm.numpy_memory("hbw"):
    with hbmcomm.numpy_memory("regular"):
        print(now())
    print(now())
print("# growing in place stays in the kind")
with hbmcomm.numpy_memory("hbw"):
    array = np.arange(100)
array.resize(100_000, refcheck=False)
print(handler(array), array[:100].sum(), array[100:].any())
"""


def test_arrays_made_inside_are_of_the_kind_as_long_as_they_live(python, needs_memkind) -> None:
    result = python(INSIDE)
    assert result.stdout.splitlines() == [
        "# every array made inside is in the kind",
        "hbw {'memkind hbw'} [0, 2, 4, 6, 8] 0.0",
        "default_allocator",
        "# their source is memkind through views and after the context",
        "{'memkind'} None mmap",
        "{'memkind'} None",
        "# arrays outlive the context and are freed by their own allocator",
        "('bind', (0,)) memkind hbw",
        "70.0",
        "# contexts nest",
        "memkind regular",
        "memkind hbw",
        "# growing in place stays in the kind",
        "memkind hbw 4950 False",
    ], result.stderr


def test_no_hbm_and_no_such_kind_fail_before_anything_changes() -> None:
    before = np._core.multiarray.get_handler_name()
    with pytest.raises(KindUnavailable), hbmcomm.numpy_memory("dax_kmem"):
        pass
    with pytest.raises(ValueError, match="unknown kind"), hbmcomm.numpy_memory("fast"):
        pass
    assert np._core.multiarray.get_handler_name() == before


def test_an_array_outlives_the_module_as_at_the_end_of_a_process(python) -> None:
    result = python("""
import numpy as np, hbmcomm
from hbmcomm.memory import numpy_memory
with hbmcomm.numpy_memory("regular"):
    x = np.ones(100_000)
vars(numpy_memory).clear()
others = [bytes([1 + number % 250]) * 11 for number in range(10_000)]  # takes freed memory
del x
print("freed")
""")
    assert (result.returncode, result.stdout, result.stderr) == (0, "freed\n", "")


def test_an_array_outlives_the_range_of_a_kind_that_memkind_lacks(python) -> None:
    # as where a module is loaded again, or two threads are the first in such a kind
    result = python("""
import gc, sys
import numpy as np
from hbmcomm import numpy_memory
from hbmcomm.memory import memkind
memkind.has_kind = lambda name: False
with numpy_memory("regular"):
    x = np.ones(100_000)
del numpy_memory, memkind
for name in [name for name in sys.modules if name.startswith("hbmcomm")]:
    del sys.modules[name]
gc.collect()
print(x.sum())
del x
print("freed")
""")
    assert (result.returncode, result.stdout, result.stderr) == (0, "100000.0\nfreed\n", "")


@pytest.mark.parametrize("last", ["sys", "numpy", "encodings"])
def test_modules_that_go_last_may_keep_arrays(python, last: str) -> None:
    # as packages do that make constants when they are imported
    result = python(f"""
import {last}, numpy as np, hbmcomm
{last}.kept = [hbmcomm.empty(100_000, kind="regular")]
for kind in ("regular", "interleave"):
    with hbmcomm.numpy_memory(kind):
        {last}.kept.append(np.ones(100_000))
""")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
