"""Which operations, sizes and values place each threshold, and which thresholds nothing places."""

from collections.abc import Mapping

from experiments.model import trials as tune
from experiments.model.trials import CHOICE, FROM, NEVER, UP_TO, Place, Trial, trials
from hbmcomm import Threshold, tuning

FLAT = Place(ranks=2, nodes=1, caches=1)
KIB, MIB = 2**10, 2**20
DEFAULTS = {
    "HBMCOMM_EAGER_BYTES": 2 * KIB,
    "HBMCOMM_SHORT_BYTES": 8 * KIB,
    "HBMCOMM_FOLD_BYTES": 4 * KIB,
    "HBMCOMM_FETCH_BYTES": 128 * KIB,
    "HBMCOMM_FETCH_IDLE_BYTES": 2**40,
    "HBMCOMM_PIECE_BYTES": 256 * KIB,
    "HBMCOMM_BY_NODE_BYTES": 32 * KIB,
    "HBMCOMM_STREAM_BYTES": 32 * MIB,
    "HBMCOMM_FAN_IN": 8,
    "HBMCOMM_PUSH_RANKS": 8,
    "HBMCOMM_SPIN_US": 50,
}


def plan(place: Place, **changes: int) -> tuple[Mapping[str, Trial], Mapping[str, str]]:
    """Trials by the variable's name without HBMCOMM_, and the others' reasons."""
    values = DEFAULTS | {f"HBMCOMM_{name}": value for name, value in changes.items()}
    thresholds = [Threshold(name, value, value, "bytes", "") for name, value in values.items()]
    planned = {
        trial.variable.removeprefix("HBMCOMM_"): trial for trial in trials(thresholds, place)
    }
    return (
        {name: trial for name, trial in planned.items() if not trial.why},
        {name: trial.why for name, trial in planned.items() if trial.why},
    )


def sizes(trial: Trial) -> list[int]:
    return sorted({cell.at for cell in trial.cells})


def test_every_threshold_of_the_library_is_measured_or_has_a_reason() -> None:
    thresholds = tuning(2)
    planned = trials(thresholds, FLAT)
    assert [trial.variable for trial in planned] == [threshold.variable for threshold in thresholds]
    assert all(bool(trial.why) != bool(trial.cells) for trial in planned)


def test_sizes_are_powers_of_two_around_the_threshold() -> None:
    trial = plan(FLAT)[0]["EAGER_BYTES"]
    assert sizes(trial) == [2**power for power in range(8, 15)]
    assert {cell.operation for cell in trial.cells} == {"bcast", "gather", "allgather"}
    assert (trial.way, trial.values) == (UP_TO, (0, tune.SLOT))


def test_a_threshold_at_its_end_is_tried_below_it_alone() -> None:
    crowded = plan(FLAT, EAGER_BYTES=32 * KIB, SHORT_BYTES=32 * KIB)
    assert sizes(crowded[0]["EAGER_BYTES"]) == [4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB]
    assert crowded[1]["SHORT_BYTES"] == tune.NOT_APART


def test_what_goes_a_third_way_is_left_out() -> None:
    planned = plan(FLAT)[0]
    assert min(sizes(planned["SHORT_BYTES"])) > DEFAULTS["HBMCOMM_EAGER_BYTES"]
    assert min(sizes(planned["FETCH_BYTES"])) > DEFAULTS["HBMCOMM_SHORT_BYTES"]
    assert planned["SHORT_BYTES"].private and planned["FETCH_BYTES"].private
    assert not planned["EAGER_BYTES"].private


def test_messages_are_on_the_side_of_the_threshold_that_the_way_under_test_is() -> None:
    for ranks in (2, 3, 7):
        planned = plan(Place(ranks, nodes=2, caches=2))[0]
        for name, scale in (
            ("FOLD_BYTES", {"reduce": ranks, "allreduce": ranks}),
            ("STREAM_BYTES", {"bcast": ranks, "allreduce": 2 * ranks}),
        ):
            for cell in planned[name].cells:
                touched = cell.bytes * scale[cell.operation]
                assert cell.at - 4 * 2 * ranks < touched <= cell.at, ranks
        for cell in planned["BY_NODE_BYTES"].cells:
            assert cell.at <= cell.bytes * ranks < cell.at + 4 * ranks, ranks
        assert all(cell.bytes % 4 == 0 for trial in planned.values() for cell in trial.cells)


def test_caches_larger_than_what_is_quickly_measured_are_tried_from_below() -> None:
    trial = plan(FLAT, STREAM_BYTES=480 * MIB)[0]["STREAM_BYTES"]
    assert sizes(trial) == [8 * MIB, 16 * MIB, 32 * MIB, 64 * MIB]


def test_what_is_never_done_is_tried_with_the_longest_messages() -> None:
    trial = plan(FLAT)[0]["FETCH_IDLE_BYTES"]
    assert sizes(trial) == [2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB]
    assert {cell.operation for cell in trial.cells} == {"bcast", "gather"}


def test_what_senders_write_nobody_fetches() -> None:
    planned, left_out = plan(FLAT, SHORT_BYTES=32 * KIB, PUSH_BYTES=64 * KIB)
    assert sizes(planned["PUSH_BYTES"]) == [2**power * KIB for power in range(6, 10)]
    assert planned["PUSH_BYTES"].private and planned["PUSH_BYTES"].way == FROM
    assert left_out["FETCH_IDLE_BYTES"] == tune.NOT_APART
    assert plan(Place(16, nodes=2, caches=4), PUSH_BYTES=64 * KIB)[1]["PUSH_BYTES"]


def test_two_ranks_on_one_node_say_nothing_of_groups_nodes_and_times() -> None:
    assert plan(FLAT)[1] == {
        "PIECE_BYTES": tune.NOBODY_PASSES_ON,
        "BY_NODE_BYTES": tune.ONE_NODE,
        "FAN_IN": tune.ONE_TREE,
        "SPIN_US": tune.TIMES,
    }


def test_many_ranks_on_two_nodes_measure_all_but_times_and_the_roots_part() -> None:
    planned, left_out = plan(Place(ranks=16, nodes=2, caches=4))
    assert left_out == {
        "FETCH_IDLE_BYTES": tune.NOBODY_IDLES,
        "PUSH_RANKS": tune.NO_ROOT_COPIES,
        "SPIN_US": tune.TIMES,
    }
    assert planned["BY_NODE_BYTES"].way == FROM
    assert planned["BY_NODE_BYTES"].values == (0, NEVER)
    assert planned["FAN_IN"].values == (2, 4, 16)
    assert 256 * KIB not in planned["PIECE_BYTES"].values
    assert planned["PIECE_BYTES"].way == CHOICE


def test_only_fan_ins_that_make_another_tree_are_tried() -> None:
    for ranks, fan_in, values in (
        *((3, 8, (2,)), (4, 8, (2,)), (6, 8, (2, 4))),
        *((8, 8, (2, 4)), (6, 4, (2, 8)), (5, 5, (2, 4))),
    ):
        trial = plan(Place(ranks, 1, 1), FAN_IN=fan_in)[0]["FAN_IN"]
        assert trial.values == values, (ranks, fan_in)
        assert ("barrier", 0) in [(cell.operation, cell.bytes) for cell in trial.cells]


def test_the_root_copies_with_one_of_two_values() -> None:
    for now, other in ((8, 3), (4, 3), (3, 4), (0, 4)):
        assert plan(Place(4, 1, 1), PUSH_RANKS=now)[0]["PUSH_RANKS"].values == (other,), now


def test_the_value_in_force_is_one_of_the_two_ways_at_every_size() -> None:
    planned = plan(FLAT)[0]
    eager, fetch = planned["EAGER_BYTES"], planned["FETCH_BYTES"]
    assert [eager.in_force(at) for at in (1024, 2048, 4096)] == [True, True, False]
    assert [fetch.in_force(at) for at in (64 * KIB, 128 * KIB)] == [False, True]
    assert (eager.with_way, eager.without_way) == (tune.SLOT, 0)
    assert (fetch.with_way, fetch.without_way) == (1, NEVER)
