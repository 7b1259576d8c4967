"""What the kernel shows under /sys comes out in bytes, seconds and numbers."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hbmcomm.memory import sysfs
from hbmcomm.memory.topology import DaxDevice

GIB = 2**30


def test_a_list_reads_as_the_kernel_means_it() -> None:
    lists = {"0-3,8": (0, 1, 2, 3, 8), "5": (5,), "": (), "\n": (), "2,0-1\n": (0, 1, 2)}
    assert {text: sysfs.parse_list(text) for text in lists} == lists


@pytest.mark.parametrize("text", ["x", "1-", "-1", "0,two", "3-1", "0-99999999"])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        sysfs.parse_list(text)


@given(st.sets(st.integers(0, 300), min_size=1))
def test_writing_and_reading_a_list_gives_the_same_numbers(numbers: set[int]) -> None:
    assert sysfs.parse_list(sysfs.format_list(tuple(numbers))) == tuple(sorted(numbers))


def test_no_numbers_are_written_as_none() -> None:
    assert sysfs.format_list(()) == "none"


def test_memory_of_a_node_is_in_bytes_and_page_cache_counts_as_available(machine) -> None:
    memory = sysfs.node_memory(machine("laptop").sysfs, 0)
    assert memory.total == 16 * GIB
    assert memory.free == 15099494 * 1024
    assert memory.available == (15099494 + 167772 + 335544 + 83886 // 2) * 1024


def test_hmat_values_are_in_si_units(machine) -> None:
    hbm = sysfs.nodes(machine("xeon_max_snc4_flat").sysfs)[8]
    assert hbm.read_bandwidth == 390625 * 2**20
    assert hbm.read_latency == pytest.approx(130e-9)
    assert hbm.initiators == (0,)


def test_the_view_of_cpus_counts_more_than_that_of_an_accelerator(machine) -> None:
    expander = sysfs.nodes(machine("cxl").sysfs)[2]
    assert expander.read_bandwidth == 53000 * 2**20
    assert expander.initiators == (0,)


def test_a_machine_without_hmat_has_no_bandwidths(machine) -> None:
    (node,) = sysfs.nodes(machine("laptop").sysfs)
    assert node.read_bandwidth is node.read_latency is None
    assert node.initiators == ()


def test_an_hmat_value_of_zero_is_unknown(own_machine) -> None:
    root = own_machine("cxl").sysfs
    (root / "devices/system/node/node2/access1/initiators/read_bandwidth").write_text("0\n")
    assert sysfs.nodes(root)[2].read_bandwidth is None


def test_distances_go_by_node_number_even_where_numbers_are_missing(own_machine) -> None:
    root = own_machine("cxl").sysfs
    (root / "devices/system/node/node1").rename(root / "devices/system/node/node5")
    assert sysfs.nodes(root)[0].distances == {0: 10, 2: 21, 5: 14}


def test_a_dax_device_tells_its_target_node_and_whether_it_is_in_use(machine) -> None:
    assert sysfs.dax_devices(machine("cxl").sysfs) == (
        DaxDevice("dax0.0", target_node=2, size_bytes=128 * GIB, online=True),
        DaxDevice("dax1.0", target_node=3, size_bytes=64 * GIB, online=False),
    )


def test_tiers_come_fastest_first(machine) -> None:
    assert [tier.number for tier in sysfs.tiers(machine("cxl").sysfs)] == [4, 22]


def test_cpus_that_share_a_cache_make_one_cache(machine) -> None:
    (cache,) = sysfs.caches(machine("xeon_max_snc4_flat").sysfs)
    assert (cache.level, cache.size_bytes, len(cache.cpus)) == (3, 115200 * 1024, 112)


def test_hbm_in_cache_mode_shows_as_a_memory_side_cache(own_machine) -> None:
    root = own_machine("knl_quadrant_flat").sysfs
    index = root / "devices/system/node/node0/memory_side_cache/index1"
    index.mkdir(parents=True)
    (index / "size").write_text(f"{16 * GIB}\n")
    (cache,) = sysfs.caches(root)
    assert (cache.node, cache.size_bytes) == (0, 16 * GIB)


def test_an_empty_tree_has_nothing(tmp_path: Path) -> None:
    assert sysfs.nodes(tmp_path) == ()
    assert sysfs.tiers(tmp_path) == ()
    assert sysfs.dax_devices(tmp_path) == ()
    assert sysfs.caches(tmp_path) == ()
