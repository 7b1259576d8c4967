"""The backend "hbm" on ranks of several hosts: emulated by numbers of boots, and by namespaces."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytestmark = [pytest.mark.ranks]

Start = Callable[..., Any]


def test_two_hosts_of_two_and_one_ranks_do_every_operation(torch_ranks: Start) -> None:
    assert torch_ranks("hosts", 3, "0,1,0", "operations").right() == ["right\n"] * 3


@pytest.mark.rare
def test_a_subgroup_uses_memory_within_a_host_and_gloo_between_hosts(torch_ranks: Start) -> None:
    assert torch_ranks("hosts", 3, "0,0,1", "subgroups").right() == ["right\n"] * 3


@pytest.mark.rare
def test_a_rank_that_dies_is_named_on_its_host_and_ends_calls_on_others(
    torch_ranks: Start,
) -> None:
    ranks = torch_ranks("hosts", 3, "1,0,0", "ends", "dead")
    assert "rank 1 on another host: " in ranks.outputs[0]
    assert "rank 2 died" in ranks.outputs[1]
    assert all(float(output.partition(" ")[0]) <= 2.0 for output in ranks.outputs[:2])


@pytest.fixture
def namespaces() -> Iterator[list[str]]:
    """Two network namespaces with a link between them, 10.98.0.1 and .2 of their device wire."""
    if shutil.which("ip") is None:
        pytest.skip("ip is not installed: apt install iproute2")
    names = [f"hbm{os.getpid()}{letter}" for letter in "ab"]
    steps = [f"ip netns add {name}" for name in names]
    steps.append(f"ip -n {names[0]} link add wire type veth peer name wire netns {names[1]}")
    for number, name in enumerate(names, 1):
        steps += [
            f"ip -n {name} address add 10.98.0.{number}/24 dev wire",
            f"ip -n {name} link set wire up",
            f"ip -n {name} link set lo up",
        ]
    try:
        for step in steps:
            subprocess.run(step.split(), check=True, capture_output=True, text=True)
        yield names
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespaces can be made here: {error.stderr.strip()}")
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


@pytest.mark.rare
def test_groups_work_at_once_between_hosts_with_networks_of_their_own(
    namespaces: list[str], torch_ranks: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "wire")
    words = [["ip", "netns", "exec", namespaces[rank // 2]] for rank in range(4)]
    arguments = ("0,0,1,1", "at_once", "1", "60")
    ranks = torch_ranks("hosts", 4, *arguments, hosts=words, master="10.98.0.1")
    assert all(output.endswith("right\n") for output in ranks.right())


@pytest.mark.rare
def test_ranks_of_one_host_share_memory_though_their_networks_are_apart(
    namespaces: list[str], torch_ranks: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container for each rank; send and recv go over the link."""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "wire")
    words = [["ip", "netns", "exec", name] for name in namespaces]
    ranks = torch_ranks("operations", 2, hosts=words, master="10.98.0.1")
    assert all(output.endswith("right\n") for output in ranks.right())
