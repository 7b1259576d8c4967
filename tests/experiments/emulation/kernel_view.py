"""What Linux shows of an emulated machine once it is booted."""

from experiments.emulation.machine import Description
from hbmcomm.memory.hbm_detection import Clues
from hbmcomm.memory.topology import DaxDevice, Node


def nodes_as_shown(machine: Description, online: bool) -> tuple[Node, ...]:
    """A machine's nodes with memory, before or after its dax devices are online."""
    later = {device.node: device.online_bytes for device in machine.dax if online}
    sizes = {node.id: node.memory_bytes or later.get(node.id, 0) for node in machine.nodes}
    return tuple(
        Node(
            id=node.id,
            cpus=node.cpus,
            total_bytes=size,
            free_bytes=size,
            available_bytes=size,
            distances={
                other: distance
                for other, distance in enumerate(machine.distances.rows[node.id])
                if sizes[other]
            },
            initiators=(node.initiator,) if machine.has_hmat else (),
            read_bandwidth=machine.bandwidth(node),
        )
        for node in machine.nodes
        if (size := sizes[node.id])
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
        caches=(),
        gpu_nodes={},
        subtypes={},
        environ={},
    )
