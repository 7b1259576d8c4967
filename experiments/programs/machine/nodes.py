"""The NUMA nodes of this machine and which are HBM, as plain values that JSON can hold.

Knows which of them a result keeps: what is the same at each launch on a machine.
"""

from typing import Any

import hbmcomm

KEPT = ("id", "total_bytes", "read_bandwidth", "is_hbm")


def nodes(sysfs: str = "/sys", procfs: str = "/proc") -> dict[str, Any]:
    """As rank 0 sees them, all of the machine's, whatever a cpuset allows.

    Returns:
        nodes: of each the values KEPT (bytes; bytes/s, None where firmware is silent); `cpus`;
            `initiators`, the nodes that reach it best by HMAT, none where that is silent;
            `distances`, {node as text: distance as firmware counts}.
        hbm: the finding: nodes, the rule that decided, evidence, emulated.
    """
    found = hbmcomm.topology(sysfs, procfs)
    return {
        "nodes": [
            {key: getattr(node, key) for key in KEPT}
            | {"cpus": list(node.cpus), "initiators": list(node.initiators)}
            | {"distances": {str(other): far for other, far in sorted(node.distances.items())}}
            for node in found.nodes
        ],
        "hbm": {
            "nodes": list(found.hbm.nodes),
            "rule": found.hbm.rule,
            "evidence": list(found.hbm.evidence),
            "emulated": found.hbm.emulated,
        },
    }
