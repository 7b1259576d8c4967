"""Where two ranks made different calls, from what each remembers."""

from hbmcomm.hierarchical.links import Call, Calls


def made(*calls: Call) -> Calls:
    found = Calls()
    for each in calls:
        found.add(each)
    return found


SUM, GIVE, WAIT = Call("Allreduce", 8), Call("Bcast", 8, 1), Call("Barrier")


def test_the_first_different_call_is_found_from_either_side() -> None:
    here, there = made(SUM, GIVE, WAIT), made(SUM, SUM, WAIT)
    assert here.difference(there.recent()) == (str(GIVE), str(SUM))
    assert there.difference(here.recent()) == (str(SUM), str(GIVE))


def test_a_rank_that_is_behind_differs_in_nothing() -> None:
    here, there = made(SUM, GIVE, WAIT), made(SUM)
    assert here.difference(there.recent()) is None
    assert there.difference(here.recent()) is None
    assert there.difference(Calls().recent()) is None


def test_a_root_far_ahead_still_knows_the_call_in_which_others_wait() -> None:
    here, there = made(SUM, *[GIVE] * 1000), made(SUM, SUM)
    assert here.difference(there.recent()) == (str(GIVE), str(SUM))


def test_roots_and_lengths_are_told_apart() -> None:
    assert made(GIVE).difference(made(GIVE._replace(root=2)).recent()) is not None
    assert made(GIVE).difference(made(GIVE._replace(nbytes=16)).recent()) is not None
