"""Files as Linux has them in /sys and /proc, under a temporary root."""

from pathlib import Path
from typing import Any

from hbmcomm.memory.sysfs import INTERLEAVE_WEIGHTS, parse_list


def write_machine(described: dict[str, Any], root: Path) -> None:
    """The files of a description, in the places where Linux has them.

    A node has meminfo, access0 and access1; or `kib` of memory, nine tenths of it free, and one of
    the description's `speeds` for CPUs of the node `near`.
    """
    node_root = root / "sys/devices/system/node"
    for number, node in enumerate(described["node"]):
        folder = node_root / f"node{number}"
        meminfo = node.get("meminfo") or _meminfo(node["kib"])
        lines = (f"Node {number} {name}: {kib:>15} kB" for name, kib in meminfo.items())
        put(folder / "meminfo", "\n".join(lines))
        put(folder / "cpulist", node["cpulist"])
        put(folder / "distance", node["distance"])
        speed: dict[str, Any] = {}
        if "speed" in node:
            speed = described["speeds"][node["speed"]] | {"initiators": [node["near"]]}
        for access in ("access0", "access1"):
            for name, value in node.get(access, speed).items():
                initiators = folder / access / "initiators"
                if name == "initiators":
                    for initiator in value:
                        link(initiators / f"node{initiator}", node_root / f"node{initiator}")
                else:
                    put(initiators / name, str(value))
    for nodes, weight in described.get("weights", {}).items():  # of Linux 6.9 and newer
        for node in parse_list(nodes):
            put(root / "sys" / INTERLEAVE_WEIGHTS / f"node{node}", str(weight))
    for number, nodes in described.get("tiers", {}).items():
        tier = root / f"sys/devices/virtual/memory_tiering/memory_tier{number}"
        put(tier / "nodelist", nodes)
    for device in described.get("dax", []):
        folder = root / "sys/bus/dax/devices" / device["name"]
        put(folder / "target_node", str(device["target_node"]))
        put(folder / "numa_node", "0")
        put(folder / "size", str(device["size"]))
        link(folder / "driver", root / "sys/bus/dax/drivers" / device["driver"])
    for name, text in described.get("files", {}).items():
        put(root / name, text)
    put(root / "proc/cpuinfo", described["cpuinfo"])
    put(root / "proc/meminfo", "MemTotal: 8388608 kB\nMemFree: 4194304 kB")
    put(root / "sys/devices/system/cpu/online", "0-7")


def _meminfo(kib: int) -> dict[str, int]:
    shares = {"Active(file)": 10, "Inactive(file)": 20, "SReclaimable": 5}  # thousandths
    return {"MemTotal": kib, "MemFree": kib * 9 // 10} | {
        name: kib * share // 1000 for name, share in shares.items()
    }


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    target.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
