"""What random programs may contain; HBMCOMM_TEST_WITHOUT=threads,stalls switches features off."""

import os
from collections.abc import Mapping

FEATURES = {
    "nonblocking": "nonblocking calls, several in flight",
    "persistent": "persistent calls",
    "derived": "derived datatypes",
    "user_operations": "operations that the program defines, on entries of 1 byte to 4 KiB",
    "ordered_operations": "such operations that are not commutative",
    "empty_entries": "such operations on a datatype of 0 bytes",
    "large_entries": "such operations on entries of more than 64 KiB, up to more than 4 MiB",
    "large": "messages of 1 MiB and more",
    "read_only": "sent data in memory that is read-only",
    "tuning": "thresholds of the core other than its defaults",
    "messages": "messages between two ranks",
    "objects": "lower-case calls",
    "late_objects": "a root that goes on after a lower-case call while a peer is late",
    "many_in_flight": "more than 64 operations in flight, the first waited for before the others",
    "threads": "threads that call at the same time, each on a communicator of its own",
    "handed": "calls of one thread at a time that several threads make in turn",
    "late": "ranks that sleep before a call",
    "stalls": "ranks that stall at an access to a buffer, as in a page fault",
    "pauses": "ranks that pause at any instruction",
    "interrupts": "exceptions of signal handlers in starts and waits, and one in a blocking call",
    "freed": "communicators that all ranks free in the middle of the program",
    "dropped": "communicators that ranks drop without Free",
    "errors": "communicators that ranks leave by an exception in a with block",
    "reuse": "new communicators and arrays in the memory of those left, at once",
    "exit": "ranks that end while others are in the last call",
}


def enabled(environ: Mapping[str, str] = os.environ) -> frozenset[str]:
    """The features that are on.

    Raises:
        ValueError: HBMCOMM_TEST_WITHOUT names an unknown feature.
    """
    without = {name for name in environ.get("HBMCOMM_TEST_WITHOUT", "").split(",") if name}
    if unknown := without - FEATURES.keys():
        raise ValueError(
            f"HBMCOMM_TEST_WITHOUT names {', '.join(sorted(unknown))}; "
            f"features are {', '.join(FEATURES)}"
        )
    return frozenset(FEATURES.keys() - without)
