"""What emulated hosts are: names, addresses, links, and the lines that make these. Pure.

Subnets and devices are in namespaces of their own, so every set of hosts has the same ones.
"""

import re
from dataclasses import dataclass

from experiments.model.environment import RATE, check_hosts
from experiments.model.errors import SpecError
from experiments.model.quantities import parse_rate

CONTROLLER = "ctl"
"""The name of the switch as a host: where mpiexec runs."""
BRIDGE = "switch"
"""The device of the switch that has the controller's address."""
LINK = "eth0"
"""The device of each host."""
NETWORK = "10.99.0"
TIMES = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
LONGEST = 1.0  # seconds of delay
HELD = 10_000  # packets
BURST = 1e-3  # seconds of the rate that may pass at once
LEAST_BURST = 16 * 2**10  # bytes: some packets of an ordinary link
QUEUE = 20e-3  # seconds that a packet may wait


@dataclass(frozen=True)
class Plan:
    """A set of hosts.

    Attributes:
        count: hosts, named n1, n2 ...
        rate: of each link in each direction, as tc(8) writes it: 1gbit, 100mbit.
        delay: of each link in each direction: 0.5ms, 200us; "" for none.
    """

    count: int
    rate: str = RATE
    delay: str = ""

    def __post_init__(self) -> None:
        check_hosts(self.count, self.rate)
        seconds(self.delay)

    @property
    def names(self) -> tuple[str, ...]:
        """The hosts."""
        return tuple(f"n{number}" for number in range(1, self.count + 1))

    def resolution(self) -> str:
        """The text of /etc/hosts, for all of them and the controller."""
        known = {name: address(name) for name in (*self.names, CONTROLLER)}
        lines = [f"{where} {name}" for name, where in {"localhost": "127.0.0.1", **known}.items()]
        return "".join(f"{line}\n" for line in lines)

    def of_switch(self, keepers: dict[str, int], has_links: bool = False) -> list[str]:
        """Shell lines for the switch's namespaces.

        Args:
            keepers: PIDs of processes in the hosts' namespaces, by host.
            has_links: whether the links are there already.
        """
        lines = [
            "ip link set lo up",
            f"ip link add {BRIDGE} type bridge",
            f"ip address add {address(CONTROLLER)}/24 dev {BRIDGE}",
            f"ip link set {BRIDGE} up",
        ]
        for name in self.names:
            if not has_links:
                lines += [f"ip link add {name} type veth peer name {LINK} netns {keepers[name]}"]
            lines += [
                f"ip link set {name} master {BRIDGE} up",
                shaping(name, self.rate),
            ]
        return lines

    def of_host(self, name: str) -> list[str]:
        """Shell lines for the namespaces of a host, which has its link."""
        return [
            "ip link set lo up",
            f"ip address add {address(name)}/24 dev {LINK}",
            f"ip link set {LINK} up",
            shaping(LINK, self.rate),
        ]


def address(name: str) -> str:
    """The IPv4 address of a host or the controller."""
    return f"{NETWORK}.{254 if name == CONTROLLER else number(name)}"


def number(name: str) -> int:
    """The number of a host, from 1."""
    return int(name.removeprefix("n"))


def seconds(delay: str) -> float:
    """Seconds of a delay; 0 for none.

    Raises:
        SpecError: it is none.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(us|ms|s)", delay) if delay else None
    if delay and (not match or float(match[1]) * TIMES[match[2]] > LONGEST):
        raise SpecError(
            f"delay {delay!r} does not parse; write a number and one of {', '.join(TIMES)}, at "
            f"most {LONGEST:g}s"
        )
    return float(match[1]) * TIMES[match[2]] if match else 0.0


def delaying(device: str, delay: str) -> str:
    """The shell line that holds what a shaped device sends, where the kernel can do that."""
    return f"tc qdisc replace dev {device} parent 1: netem delay {delay} limit {HELD}"


def shaping(device: str, rate: str) -> str:
    """The shell line that limits what a device sends, from now on."""
    burst = max(LEAST_BURST, round(parse_rate(rate) / 8 * BURST))
    limit = burst + round(parse_rate(rate) / 8 * QUEUE)
    return (
        f"tc qdisc replace dev {device} root handle 1: tbf rate {rate} burst {burst} limit {limit}"
    )


HOME = (address(CONTROLLER), BRIDGE)
"""The switch as hosts reach it: its address, and the interface that has it."""
