"""What a task changes in the process that it runs in."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def handlers() -> Iterator[None]:
    """After the test signals have the handlers that they had before: a task sets its own."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
