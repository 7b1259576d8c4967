"""What Linux shows of an emulated machine once it is booted, and of this machine."""

import pytest

from experiments.emulation import numa_maps
from experiments.emulation.machine import Description
from hbmcomm.memory.hbm_detection import Clues
from hbmcomm.memory.topology import DaxDevice, Node

needs_numa_maps = pytest.mark.skipif(
    not (numa_maps.OWN / "numa_maps").exists(), reason="a kernel without NUMA has no numa_maps"
)


def nodes_as_shown(machine: Description, online: bool) -> tuple[Node, ...]:
    """A machine's nodes with memory, before or after its dax devices are online."""
    later = {device.node: device.online_bytes for device in machine.dax if online}
    return tuple(
        Node(
            id=node.id,
            cpus=node.cpus,
            total_bytes=size,
            free_bytes=size,
            available_bytes=size,
            distances=dict(enumerate(machine.distances.rows[node.id])),
            initiators=(node.initiator,) if machine.has_hmat else (),
            read_bandwidth=machine.bandwidth(node),
        )
        for node in machine.nodes
        if (size := node.memory_bytes or later.get(node.id, 0))
    )


def clues_as_shown(machine: Description, online: bool) -> Clues:
    """What the library reads of the booted machine."""
    processor = machine.processor
    return Clues(
        nodes=nodes_as_shown(machine, online),
        tiers=(),
        dax=tuple(
            DaxDevice(device.name, device.node, device.device_bytes, online)
            for device in machine.dax
        ),
        processor={
            "vendor_id": processor.vendor,
            "cpu family": str(processor.family),
            "model": str(processor.model),
            "model name": processor.name,
        }
        if processor
        else {},
        gpu_nodes={},
        subtypes={},
        environ={},
    )
