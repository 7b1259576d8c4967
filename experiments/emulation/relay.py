"""A link with a delay: frames from one tap device to another and back, each held for a while.

`python relay.py SWITCH HOST PORT LINK SECONDS`: SWITCH and HOST are PIDs in the namespaces of the
two ends, PORT and LINK their devices. It returns once both are there. What passes the frames runs
in the PID namespace of HOST, so the link goes with the host.
"""

import collections
import contextlib
import ctypes
import fcntl
import os
import select
import struct
import sys
import time
from pathlib import Path

NAME = "relay"
"""Name of the relay among the processes of a host."""
FRAME = 2**17  # more bytes than one has, segments and headers together
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
TUNSETIFF, TUNSETOFFLOAD = 0x400454CA, 0x400454D0
CHECKSUM, SEGMENTS = 0x01, 0x02 | 0x04  # of TCP over IPv4 and IPv6
MOST = 4096  # frames that are held; others are dropped, as by a queue that is full
FIRST = -20  # of nice(2): a link does not wait for the ranks that use it

_setns = ctypes.CDLL(None, use_errno=True).setns


def enter(pid: int, kind: str) -> None:
    """Enter a namespace of a process."""
    descriptor = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)
    if _setns(descriptor, 0):
        raise OSError(ctypes.get_errno(), f"cannot enter the {kind} namespace of {pid}")
    os.close(descriptor)


def tap(device: str) -> int:
    """Make a device that ends with the descriptor.

    A frame holds many segments of TCP and no checksum, as those of a veth pair do: there are far
    fewer to pass on. The header before it says so, and goes with it.
    """
    made = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR
    fcntl.ioctl(made, TUNSETIFF, struct.pack("16sH22x", device.encode(), flags))
    fcntl.ioctl(made, TUNSETOFFLOAD, CHECKSUM | SEGMENTS)
    return made


def relay(ends: tuple[int, int], seconds: float) -> None:
    """Pass frames on, for ever."""
    other = dict(zip(ends, reversed(ends), strict=True))
    held: collections.deque[tuple[float, int, bytes]] = collections.deque()
    while True:
        now = time.monotonic()
        while held and held[0][0] <= now:
            _, end, frame = held.popleft()
            with contextlib.suppress(OSError):  # that end is down: the frame is lost
                os.write(end, frame)
        came, _, _ = select.select(ends, [], [], max(0.0, held[0][0] - now) if held else None)
        for end in came:
            take(end, other[end], held, seconds)


def take(
    end: int, other: int, held: collections.deque[tuple[float, int, bytes]], seconds: float
) -> None:
    """Take the frames that have come at one end."""
    while len(held) < MOST:
        try:
            frame = os.read(end, FRAME)
        except BlockingIOError:
            return
        except OSError:  # the end is down
            time.sleep(seconds)
            return
        held.append((time.monotonic() + seconds, other, frame))


def main(switch: int, host: int, port: str, link: str, seconds: float) -> None:
    """Make both ends, and leave a process of the host's that passes frames on."""
    enter(switch, "net")
    near = tap(port)
    enter(host, "net")
    far = tap(link)
    enter(host, "pid")  # its children are there
    if os.fork():
        return
    os.setsid()
    with contextlib.suppress(PermissionError):  # root of a container may not
        os.setpriority(os.PRIO_PROCESS, 0, FIRST)
    Path("/proc/self/comm").write_text(NAME)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    relay((near, far), seconds)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], float(sys.argv[5]))
