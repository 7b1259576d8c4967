"""A connection is of use to those who know the secret, at its own place, once."""

import contextlib
import hashlib
import hmac
import socket
from collections.abc import Iterator

import pytest

from hbmcomm import authentication
from hbmcomm.authentication import CallerEnd, ListenerEnd, Place

SECRET = authentication.new_secret()
OTHER = authentication.new_secret()
WHOLE = 100  # bytes: more than any message has
Connection = tuple[socket.socket, socket.socket, Place]


@contextlib.contextmanager
def connection() -> Iterator[Connection]:
    """The listener's socket, the caller's, and the place that it called."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname(), 5.0) as caller,
        server.accept()[0] as accepted,
    ):
        accepted.settimeout(5.0)
        yield accepted, caller, server.getsockname()


def test_both_ends_prove_that_they_know_the_secret_and_do_not_send_it() -> None:
    with connection() as (accepted, caller, place):
        listener, end = ListenerEnd(accepted, SECRET), CallerEnd(caller, SECRET, place, 7)
        challenge = caller.recv(WHOLE, socket.MSG_PEEK)
        assert not end.receive()
        from_caller = accepted.recv(WHOLE, socket.MSG_PEEK)
        assert listener.receive() == 7
        listener.welcome()
        accepted.sendall(b"an order")
        answer = caller.recv(32, socket.MSG_PEEK)
        assert end.receive()
        assert caller.recv(WHOLE) == b"an order"  # nothing of what follows is taken
    signed = (
        b"L" + from_caller[:4] + challenge + from_caller[4:36] + f"127.0.0.1:{place[1]}".encode()
    )
    assert answer == hmac.new(SECRET.encode(), signed, hashlib.sha256).digest()
    passed = challenge + from_caller + answer
    assert SECRET.encode() not in passed and bytes.fromhex(SECRET) not in passed


def test_no_challenge_comes_twice() -> None:
    challenges = set()
    for _ in range(5):
        with connection() as (accepted, caller, place):
            ListenerEnd(accepted, SECRET)
            challenges.add(caller.recv(WHOLE, socket.MSG_PEEK))
            CallerEnd(caller, SECRET, place, 0).receive()
            challenges.add(accepted.recv(WHOLE)[4:36])
    assert len(challenges) == 10


def test_a_caller_without_the_secret_is_refused() -> None:
    with connection() as (accepted, caller, place):
        listener = ListenerEnd(accepted, SECRET)
        CallerEnd(caller, OTHER, place, 0).receive()
        with pytest.raises(ConnectionRefusedError, match="does not know the secret"):
            listener.receive()


def test_a_listener_without_the_secret_is_refused() -> None:
    with connection() as (accepted, caller, place):
        end = CallerEnd(caller, SECRET, place, 0)
        accepted.sendall(bytes(32))
        assert not end.receive()
        accepted.sendall(bytes(32))
        with pytest.raises(ConnectionRefusedError, match="does not know the secret"):
            end.receive()


def test_a_listener_that_returns_what_the_caller_sent_is_refused() -> None:
    with connection() as (accepted, caller, place):
        end = CallerEnd(caller, SECRET, place, 0)
        accepted.sendall(bytes(32))
        end.receive()
        accepted.sendall(accepted.recv(WHOLE)[36:])
        with pytest.raises(ConnectionRefusedError, match="does not know the secret"):
            end.receive()


def recorded() -> tuple[bytes, bytes]:
    """What a listener and a caller sent each other."""
    with connection() as (accepted, caller, place):
        listener, end = ListenerEnd(accepted, SECRET), CallerEnd(caller, SECRET, place, 3)
        challenge = caller.recv(WHOLE, socket.MSG_PEEK)
        end.receive()
        from_caller = accepted.recv(WHOLE, socket.MSG_PEEK)
        assert listener.receive() == 3
        listener.welcome()
        return challenge + caller.recv(WHOLE), from_caller


def test_a_recording_of_either_end_is_refused() -> None:
    from_listener, from_caller = recorded()
    with connection() as (accepted, caller, _):
        listener = ListenerEnd(accepted, SECRET)
        caller.sendall(from_caller)
        with pytest.raises(ConnectionRefusedError):
            listener.receive()
    with connection() as (accepted, caller, place):
        end = CallerEnd(caller, SECRET, place, 3)
        accepted.sendall(from_listener)
        assert not end.receive()
        with pytest.raises(ConnectionRefusedError):
            end.receive()


def test_a_stranger_that_listens_first_gets_nothing_to_show_to_the_listener() -> None:
    """It hands on the listener's own challenge, and the caller's answer at once."""
    with connection() as (accepted, stranger, _), connection() as (between, caller, elsewhere):
        listener = ListenerEnd(accepted, SECRET)
        between.sendall(stranger.recv(WHOLE))
        CallerEnd(caller, SECRET, elsewhere, 0).receive()
        stranger.sendall(between.recv(WHOLE))
        with pytest.raises(ConnectionRefusedError):
            listener.receive()


@pytest.mark.parametrize("at", [0, 3, 4, 35, 36, 67])
def test_each_part_of_an_answer_is_signed(at: int) -> None:
    """Rank, challenge and answer."""
    with connection() as (accepted, caller, place), connection() as (held, other, _):
        listener = ListenerEnd(accepted, SECRET)
        held.sendall(caller.recv(WHOLE))
        CallerEnd(other, SECRET, place, 0).receive()
        message = bytearray(held.recv(WHOLE))
        message[at] ^= 1
        caller.sendall(message)
        with pytest.raises(ConnectionRefusedError):
            listener.receive()


def test_messages_in_parts_are_awaited_and_an_end_is_seen() -> None:
    with connection() as (accepted, caller, place), connection() as (held, other, _):
        listener = ListenerEnd(accepted, SECRET)
        held.sendall(caller.recv(WHOLE))
        CallerEnd(other, SECRET, place, 9).receive()
        message = held.recv(WHOLE)
        for byte in message[:-1]:
            caller.sendall(bytes([byte]))
            assert listener.receive() is None
        accepted.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.receive()
        caller.sendall(message[-1:])
        accepted.settimeout(5.0)
        assert listener.receive() == 9
        caller.shutdown(socket.SHUT_WR)
        with pytest.raises(ConnectionResetError):
            listener.receive()
