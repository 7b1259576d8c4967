"""What a machine description may hold, and the error of anything else."""

import re
import tomllib
from pathlib import Path

import pytest

from experiments.emulation import description
from experiments.emulation.machine import MIB, Description
from experiments.model.environment import MACHINES
from experiments.model.errors import SpecError
from tests.refusals import refusal

SMALL = """
title = "Two nodes"
stands_for = "nothing in particular"
memory.dram = { hbm = false, gb_s = 50, ns = 100 }
memory.hbm = { hbm = true, gb_s = 300, ns = 120 }
node = [
    { id = 0, cpus = [0, 1], memory = "dram", mib = 256 },
    { id = 1, near = 0, memory = "hbm", mib = 128 },
]
distances.rows = [[10, 20], [20, 10]]
found = { hbm = [1], evidence = "6.0 times", memkind = [1] }
"""


def written(folder: Path, *changes: tuple[str, str]) -> Description:
    """SMALL with changes, as a file of its own."""
    text = SMALL
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "small.toml"
    path.write_text(text)
    return description.load(str(path))


def test_bandwidths_are_what_hmat_can_hold(tmp_path: Path) -> None:
    fastest = written(tmp_path, ("gb_s = 300", "gb_s = 8795"))
    most = fastest.bandwidth(fastest.nodes[1])
    assert most is not None
    assert most // (128 * MIB) < 2**16 - 1  # that number means: not reachable
    machine = written(tmp_path, ("gb_s = 300", "gb_s = 409.6"))
    assert [*map(machine.bandwidth, machine.nodes)] == [47744 * MIB, 390656 * MIB]


def test_a_name_or_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="unknown emulated machine 'knl-snc4'; did you mean 'knl-s"):
        description.load("knl-snc4")
    with pytest.raises(SpecError, match=r"there is no file .*gone\.toml"):
        description.load(str(tmp_path / "gone.toml"))
    (tmp_path / "torn.toml").write_text("title = ")
    with pytest.raises(SpecError, match=r"torn\.toml is not valid TOML"):
        description.load(str(tmp_path / "torn.toml"))


def refused(folder: Path, *changes: tuple[str, str]) -> str:
    """What SMALL with changes is refused with."""
    return refusal(SpecError, written, folder, *changes)


def test_what_cannot_be_meant_is_named_with_what_can(tmp_path: Path) -> None:
    for old, new, answer in (
        ("stands_for", "stands_four", "unknown key 'stands_four'; did you mean 'stands_for'?"),
        ('title = "Two nodes"', "", "title is missing"),
        ('"Two nodes"', "7", "title 7 must be a line of text"),
        ("mib = 128", "mb = 128", "unknown key 'mb'; did you mean 'mib'?"),
        ('"hbm", mib', '"hmb", mib', "node 1: unknown memory 'hmb'; did you mean 'hbm'?"),
        ("mib = 128", "mib = 100", "node 1: 100 MiB; make it a multiple of 128 MiB"),
        ("mib = 128", "mib = 128, dax_mib = 128", "node 1: give mib, or dax_mib"),
        ("mib = 128", "dax_mib = 256", r"\[found_online\] is for machines with a node of dax_mib"),
        ("near = 0, ", "", r"node 1: give cpus = \[..\], or near"),
        ("near = 0", "near = 1", "node 1 is near node 1, and the nodes with CPUs are 0"),
        ("cpus = [0, 1]", "near = 0", "no node has CPUs"),
        ("id = 1", "id = 2", "the nodes are 0, 2; number them from 0"),
        ("[0, 1]", "[0, 2]", "the nodes' CPUs are 0, 2; number them from 0"),
        ("[0, 1]", '"0-1"', "cpus '0-1' must be a list of whole numbers"),
        ("gb_s = 300, ns = 120", "gb_s = 300", "gb_s and ns come together"),
        (", gb_s = 300, ns = 120", "", "firmware has an HMAT for all nodes or for none"),
        ("gb_s = 300", "gb_s = true", r"gb_s True must be a number of 10\^9 bytes/s"),
        ("hbm = true", 'hbm = "yes"', "hbm 'yes' must be true or false"),
        ("[[10, 20], [20, 10]]", "[[10, 20]]", "write 2 rows of 2, one for each node"),
        ("[[10, 20], [20, 10]]", "[[10, 20], [21, 10]]", "20 from node 0 to node 1, 21 back"),
        ("[[10, 20], [20, 10]]", "[[10, 9], [9, 10]]", "a node is at 10 from itself"),
        ("hbm = [1], e", "hbm = [3], e", "node 3 is none of the nodes 0-1"),
        ("hbm = [1], e", "hbm = [1, 1], e", r"hbm \[1, 1\] must name each node once, in order"),
        ("hbm = [1], e", "hbm = [], e", r"the nodes of memory with hbm = true are \[1\]"),
        ("hbm = true", "hbm = false", r"the nodes of memory with hbm = true are \[\]"),
        ('"Two nodes"', '"Two\\nnodes"', "must be a line of text"),
        ('"hbm", mib', '["hbm"], mib', r"node 1: memory \['hbm'\] must be a line of text"),
        ("gb_s = 300", "gb_s = inf", r"gb_s inf must be a number of 10\^9 bytes/s, 1 to 8795"),
        ("gb_s = 300", "gb_s = nan", "gb_s nan must be a number"),
        ("gb_s = 300", "gb_s = 9000", "gb_s 9000 must be a number"),
        ("ns = 120", "ns = 70000", "ns 70000 must be a whole number, 1 to 65534"),
        ("mib = 256", "mib = 2000000", "mib 2000000 must be a whole number, 1 to 1048576"),
        ("mib = 128", "dax_mib = 128", "node 1: dax_mib 128 leaves no whole block of 128 MiB"),
        ("mib = 128", "mib = 128.0", "mib 128.0 must be a whole number"),
        ("memkind = [1]", "memkind = [0], memkind_differs = 7", "differs 7 must be a line of text"),
        ("[[10, 20], [20, 10]]", "[10, 20]", r"rows \[10, 20\] must be rows, each a list of whole"),
        ("memkind = [1]", "memkind = [0]", "say in memkind_differs why they differ"),
        ('title = "Two nodes"', 'title = "x"\nsockets = 4', "2 CPUs cannot be shared out evenly"),
        ('title = "Two nodes"', 'title = "x"\nprocessor = {}', "vendor is missing"),
        (
            'title = "Two nodes"',
            'title = "x"\nfound_online = { hbm = [1], evidence = "x", memkind = [1] }',
            "add the one or drop the other",
        ),
    ):
        text = refused(tmp_path, (old, new))
        assert text.startswith("small.toml") and re.search(answer, text), new


def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    link = tmp_path / "small.toml"
    for target in ("/proc/self/mem", "/proc/1/nothing/" + "x" * 300):
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        assert "small.toml" in refusal(SpecError, description.load, str(link)), target


def test_nodes_are_numbered_as_linux_does(tmp_path: Path) -> None:
    change = ("cpus = [0, 1]", "near = 1"), ("near = 0, ", "cpus = [0, 1], ")
    answer = "with CPUs first, and they are 1; put the nodes without"
    assert answer in refused(tmp_path, *change)


def test_a_machine_has_an_end() -> None:
    for cpus, nodes, answer in (
        (256, 1, "256 CPUs and 1 nodes; an emulated machine has 255 and 16 at most"),
        (17, 17, "17 CPUs and 17 nodes"),
    ):
        per_node = cpus // nodes
        described = [
            {"id": node, "cpus": [*range(node * per_node, (node + 1) * per_node)]}
            | {"memory": "dram", "mib": 128}
            for node in range(nodes)
        ]
        values = tomllib.loads(SMALL) | {"node": described}
        text = refusal(SpecError, description.from_dict, values, "large", "large.toml")
        assert answer in text


def test_hbm_that_is_a_device_is_hbm_only_once_it_is_online() -> None:
    values = tomllib.loads((MACHINES / "hbm-as-dax.toml").read_text())
    values["found"] |= {"hbm": [1], "memkind": [1]}
    with pytest.raises(SpecError, match=r"\[found\]: hbm \[1\].* are \[\]"):
        description.from_dict(values, "dax", "dax.toml")


def test_a_machines_name_is_one_for_a_host(tmp_path: Path) -> None:
    (tmp_path / "my,machine.toml").write_text(SMALL)
    with pytest.raises(SpecError, match="'my,machine' becomes the guest's host name"):
        description.load(str(tmp_path / "my,machine.toml"))


def test_a_processor_fits_into_cpuid(tmp_path: Path) -> None:
    values = f'vendor = "GenuineIntel", family = 6, model = 1, name = "{"A" * 47}"'
    title, processor = 'title = "Two nodes"', f'title = "x"\nprocessor = {{ {values} }}'
    assert written(tmp_path, (title, processor)).processor is not None
    for old, new, answer in (
        ("GenuineIntel", "Intel", "vendor 'Intel' must be CPUID's 12 letters"),
        ("family = 6", "family = 271", "family 271 must be a whole number, 1 to 270"),
        ("model = 1", "model = 256", "model 256 must be a whole number, 0 to 255"),
        ("A" * 47, "A" * 48, "47 letters for it, and no comma"),
        ("A" * 47, "A, B", "47 letters for it, and no comma"),
        ("A" * 47, "Intel®", "47 letters for it, and no comma"),
    ):
        assert answer in refused(tmp_path, (title, processor.replace(old, new))), new
