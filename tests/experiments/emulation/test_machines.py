"""The machines of the project: their files agree with the rules that find HBM, and with Linux."""

from itertools import product

from experiments.emulation import description
from experiments.emulation.machine import MIB, Description
from experiments.model.environment import machine_names
from hbmcomm.memory.hbm_detection import DEFAULT_THRESHOLD, RATIO, find
from tests.experiments.emulation.kernel_view import clues_as_shown


def test_the_machines_are_those_that_are_promised() -> None:
    assert machine_names() == [
        *("cxl", "gh200", "hbm-as-dax", "knl-quadrant-flat", "knl-snc4-flat", "plain"),
        "xeon-max-flat-snc4",
    ]


MACHINES = [description.load(name) for name in machine_names()]


def test_every_machine_is_valid_and_agrees_with_itself() -> None:
    for machine, name in zip(MACHINES, machine_names(), strict=True):
        assert machine.name == name
        assert machine.memory_bytes >= 2048 * MIB  # what Docker in the guest wants
        expected = machine.found_online or machine.found
        assert all(machine.nodes[node.initiator].cpus for node in machine.nodes), name
        owned = []
        for near in machine.cpu_nodes:
            local = machine.local_hbm(near.id)
            own = [node for node in local if node.initiator == near.id]
            assert not own or own == list(local), name  # without its own it has another node's
            owned += [node.id for node in own]
        assert sorted(owned) == list(expected.hbm), name


def test_what_must_be_found_is_what_the_rules_find() -> None:
    for machine, online in product(MACHINES, (False, True)):
        expected = machine.found_online if online else machine.found
        if expected is None:
            continue
        finding = find(clues_as_shown(machine, online))
        assert finding.nodes == expected.hbm, machine.name
        assert expected.evidence in finding.rule, machine.name
        for node in expected.hbm:
            assert any(
                text.startswith(f"node {node}: ") and expected.evidence in text
                for text in finding.evidence
            ), machine.name


def test_what_memkind_finds_follows_from_its_rules() -> None:
    """CPUID of a Knights Landing, else per node with CPUs the nearest node above the threshold.

    Where one of the nodes with CPUs has none, memkind finds none at all.
    """
    for machine in MACHINES:
        expected = machine.found_online or machine.found
        candidates = memkinds_candidates(machine)
        nearest = [
            min(nodes, key=lambda node, row=machine.distances.rows[cpus]: row[node])
            for cpus, nodes in candidates.items()
            if all(candidates.values())
        ]
        assert tuple(sorted(nearest)) == expected.memkind, machine.name


def memkinds_candidates(machine: Description) -> dict[int, set[int]]:
    """{node with CPUs: nodes of which memkind takes the nearest}."""
    if machine.processor and machine.processor.model == 87:
        without = {node.id for node in machine.nodes if not node.cpus}
        assert 2 * len(without) == len(machine.nodes) in (2, 4, 8)
        return {node.id: without for node in machine.cpu_nodes}
    above = [
        node for node in machine.nodes if (machine.bandwidth(node) or 0) >= DEFAULT_THRESHOLD * MIB
    ]
    return {
        cpus.id: {node.id for node in above if node.initiator == cpus.id}
        for cpus in machine.cpu_nodes
    }


def test_hbm_by_bandwidth_is_a_multiple_of_the_dram_and_cxl_is_slower() -> None:
    for name in ("xeon-max-flat-snc4", "gh200", "hbm-as-dax"):
        machine = description.load(name)
        speeds = speeds_of(machine)
        for node in machine.nodes:
            if node in machine.hbm:
                assert speeds[node.id] > RATIO * speeds[node.initiator]
    dram, cxl = speeds_of(description.load("cxl"))
    assert cxl < dram


def speeds_of(machine: Description) -> list[int]:
    """bytes/s of each node, for the CPUs that it belongs to."""
    return [machine.bandwidth(node) or 0 for node in machine.nodes]


def test_the_distances_of_a_xeon_max_mislead() -> None:
    machine = description.load("xeon-max-flat-snc4")
    for number in range(8):
        (own,) = machine.local_hbm(number)
        sibling = number ^ 1
        assert machine.distances.rows[number][own.id] > machine.distances.rows[number][sibling]


def test_who_has_no_hbm_of_its_own_has_the_nearest() -> None:
    machine = description.load("xeon-max-flat-snc4")
    assert [node.id for node in machine.local_hbm(2, among=(8, 9, 12))] == [8, 9]
    assert [node.id for node in machine.local_hbm(2, among=(12,))] == [12]
    assert machine.local_hbm(2, among=()) == ()
    assert description.load("plain").local_hbm(0) == ()


def test_a_dax_device_gives_its_node_what_linux_gave_it() -> None:
    """ndctl and daxctl printed 628 and 512 MiB in a guest of Linux 6.1."""
    machine = description.load("hbm-as-dax")
    (device,) = machine.dax
    assert (device.name, device.node) == ("dax0.0", 1)
    assert device.device_bytes == 628 * MIB
    assert device.online_bytes == 512 * MIB
    assert machine.nodes[1].memory_bytes == 0
