"""One sentence per question, and no claim that the noise floor does not carry."""

from typing import Any

import pandas as pd
import pytest

from experiments.analysis.campaign import Campaign
from experiments.analysis.confounders import Confounders
from experiments.analysis.data_path import DataPaths, HarmlessRefusal, Loss
from experiments.programs.imb import DIFFERENCES
from plots.contents import answers
from plots.text.claims import Answer
from tests.campaigns import changed, find
from tests.launched import make_launch, page_maps

LOSS = Loss("openmpi", "docker-tuned-one", ("single copy",))
COPIES = pd.DataFrame(
    [{"arm": "docker-tuned-one", "ranks": 2, "bytes": 1024, "straying": 1, "copies": 3}]
).assign(ratio=0.8, low=0.79, high=0.81)


def answer(campaign: Campaign, about: str) -> Answer:
    (only,) = (reply for reply in answers(campaign) if about in reply.question)
    return only


def sentence(campaign: Campaign, about: str) -> str:
    return answer(campaign, about).sentence


def test_each_question_names_the_drawings_that_answer_it() -> None:
    campaign = find(
        arms=("host", "host-again", "userland", "docker-tuned-one", "imb"),
        mpis=("impi",),
        bindings=("packed", "spread"),
        localities=("local", "remote"),
        operations=("bcast",),
        transports=("direct", "mpi"),
        sizes=(1024,),
        blocks=2,
    )
    named = {reply.question: reply.figure for reply in answers(campaign)}
    assert named == {
        "How much faster are collectives in high-bandwidth memory?": "speedup",
        "How much slower than direct is mpi?": "others",
        "What does it cost to spread ranks over nodes?": "placement",
        "What does a distant buffer cost?": "placement",
        "What do the image's files cost without a container: its Python, its libc?": "chain",
        "What does a container cost Bcast, over the same files without a container?": "chain",
        "What does Python itself cost?": "times",
    }


def test_what_a_container_costs_comes_before_what_transports_cost() -> None:
    questions = [reply.question for reply in answers(find())]
    about = ["high-bandwidth", "container cost", "slower than direct"]
    first = [next(n for n, question in enumerate(questions) if word in question) for word in about]
    assert first == sorted(first), questions


def test_where_no_arm_has_the_same_files_a_containers_cost_is_shown_over_the_host() -> None:
    campaign = changed(
        find(), data_paths=DataPaths((LOSS,)), confounders=Confounders(straying_copies=COPIES)
    )
    named = {reply.question: reply.figure for reply in answers(campaign)}
    assert [pair for pair in named.items() if "container cost" in pair[0]] == [
        (f"What does a container cost {name}, over the host?", "container")
        for name in ("Bcast", "Gather", "Allreduce")
    ]
    assert named["Which data path did a container lose, what gets it back, and what did it cost?"]
    assert not named["What may be the cause beside the container itself?"]
    assert "What does Python itself cost?" not in named


def test_emulated_memory_answers_nothing_about_speed() -> None:
    message = sentence(find(emulated=True), "high-bandwidth")
    assert message.startswith("Not answered by this machine: hbw was emulated")
    assert "nothing about high-bandwidth memory" in message


def test_a_campaign_that_asked_for_one_memory_is_not_asked_which_is_faster() -> None:
    def asked(**levels: Any) -> list[str]:
        every = answers(find(kinds=("regular",), **levels))
        return [reply.sentence for reply in every if "high-bandwidth" in reply.question]

    assert asked() == []
    assert asked(missing={"docker": "no engine", "pickle": "too slow"}) == []
    assert asked(missing={"hbw": "no HBM here"}) == ["Not measured. hbw: no HBM here"]


def test_real_memory_names_its_best_cell_beside_the_papers_claim() -> None:
    message = sentence(find(emulated=False), "high-bandwidth")
    assert message.startswith("Up to 3.")
    assert "445 %, read as 4.45 times, for Bcast at 16 ranks, and 487 % at most" in message


def test_no_speed_up_is_said_as_such() -> None:
    campaign = find(emulated=True)
    campaign.speedups["emulated"] = False
    message = sentence(campaign, "high-bandwidth")
    assert message.startswith("No speed-up in any of 36 cells: in regular memory they take ")


def test_what_may_be_the_cause_is_reported_beside_the_cost() -> None:
    campaign = changed(
        find(),
        data_paths=DataPaths((LOSS,)),
        confounders=Confounders({"host": "3.11.7", "docker": "3.11.2"}, straying_copies=COPIES),
    )
    cause = answer(campaign, "beside the container")
    assert cause.sentence == "The interpreters differ: Python: host 3.11.7, docker 3.11.2."
    (point,) = cause.points
    assert point.startswith("The control differs: a plain copy without MPI already takes 0.80 (")


@pytest.mark.parametrize(
    ("paths", "sentence", "point"),
    [
        (
            DataPaths((LOSS,)),
            "The data path differs from the host's: Open MPI lost single copy in Docker, tuned, ",
            "Open MPI lost single copy in Docker, tuned, one container (no trial shows why)",
        ),
        (
            DataPaths(refusals=(HarmlessRefusal("impi", "docker-tuned-one", "refused"),)),
            "None: each MPI took the same ways in every container as on the host.",
            "Intel MPI loses no single copy in Docker, tuned, one container (process_vm_readv ",
        ),
    ],
)
def test_what_was_lost_on_the_way_is_an_answer(paths: DataPaths, sentence: str, point: str) -> None:
    way = answer(changed(find(), data_paths=paths), "data path")
    assert way.sentence.startswith(sentence)
    assert way.points[0].startswith(point)


def test_what_few_blocks_show_is_no_claim_yet() -> None:
    shown = "all cells at once (95 %). Seen in 6 paired blocks; a claim needs 10."
    assert shown in sentence(find(blocks=6, emulated=False), "high-bandwidth")
    assert "a claim needs" not in sentence(
        find(blocks=10, emulated=False, arms=("host", "host-again")), "high-bandwidth"
    )


def test_a_cell_that_differs_is_given_beside_the_bound_of_the_others() -> None:
    campaign = find(sizes=(1024, 4096))
    campaign.transports["ratio"] = 1.0
    campaign.transports[["low", "high"]] = [0.9, 1.1]
    campaign.transports["verdict"] = "bounded"
    host = (campaign.transports["arm"] == "host") & (campaign.transports["kind"] == "regular")
    first = host.idxmax()
    campaign.transports.loc[first, ["ratio", "joint_low", "joint_high"]] = [0.5, 0.4, 0.6]
    campaign.transports.loc[first, "verdict"] = "differs"
    message = sentence(campaign, f"direct is {campaign.transports.loc[first, 'transport']}")
    assert "faster beyond the noise floor in 1, most in " in message
    assert ": 0.50 times (0.40 to 0.60); " in message
    assert "Intervals in brackets hold for all cells at once (95 %)." in message


def test_a_sentence_pools_neither_arms_nor_emulated_kinds_nor_forms_of_calls() -> None:
    campaign = find()
    ratios = campaign.transports
    host = (ratios["arm"] == "host") & (ratios["kind"] == "regular")
    ratios.loc[~host, "ratio"] = 9.0
    message = sentence(campaign, "direct is mpi")
    assert message.startswith("On the host, the median cell takes 2.")
    assert "from cell to cell of 12)" in message and "9.00" not in message
    later = ratios[host].assign(form="persistent", ratio=3.0)
    both = changed(campaign, transports=pd.concat([ratios, later], ignore_index=True))
    message = sentence(both, "direct is mpi")
    assert message.startswith("On the host, plain calls, the median cell takes 2.")
    assert " On the host, persistent calls, the median cell takes 3.00 times" in message


def test_what_else_is_unlike_the_benchmark_in_c_stands_with_the_cost_of_python() -> None:
    campaign = find(arms=("host", "host-again", "imb"), mpis=("impi",), blocks=2)
    assert answer(campaign, "Python itself").points == DIFFERENCES


def test_each_of_pythons_own_means_is_compared_with_mpi() -> None:
    campaign = find(
        arms=("host", "host-again", "threads", "multiprocessing"), kinds=("regular",), blocks=2
    )
    shown = {reply.question: reply for reply in answers(campaign) if reply.figure == "baselines"}
    assert set(shown) == {
        f"Without MPI ({way}), how much longer does it take?"
        for way in ("Python threads", "processes: shared memory", "processes: queues")
    }
    message = shown["Without MPI (Python threads), how much longer does it take?"].sentence
    assert "times as long with threads as with the host's MPI calls (" in message


def test_a_missing_container_is_reported_with_its_reason() -> None:
    campaign = find(arms=("host", "host-again"), missing={"docker": "no engine answers"})
    assert (
        sentence(campaign, "container cost (Docker)") == "Not measured. docker: no engine answers"
    )


@pytest.mark.parametrize(("transport", "ratio"), [("mpi", "2.0"), ("pickle", "3.6")])
def test_each_other_transport_is_compared_with_direct(transport: str, ratio: str) -> None:
    message = sentence(find(), f"slower than direct is {transport}")
    assert message.startswith(f"On the host, the median cell takes {ratio[:2]}")
    assert f"times as long with {transport} as with direct, over the same buffers" in message
    assert "slower beyond the noise floor in 12, most in " in message
    assert f", {transport}, " in message


def test_without_direct_no_transport_is_compared_and_the_reason_is_reported() -> None:
    questions = [reply.question for reply in answers(find(transports=("mpi", "pickle")))]
    assert not any("direct" in question for question in questions)
    campaign = find(transports=("mpi",), missing={"direct": "the ranks cannot share memory"})
    message = sentence(campaign, "How fast is direct?")
    assert message == "Not measured. direct: the ranks cannot share memory"


def test_private_arrays_are_not_called_the_same_buffers() -> None:
    campaign = find(transports=("direct", "mpi-private"))
    message = sentence(campaign, "slower than direct is mpi-private")
    assert "with mpi-private as with direct (" in message


def test_placement_is_answered_only_where_it_was_asked() -> None:
    assert not any("spread" in reply.question for reply in answers(find()))
    campaign = find(
        arms=("host", "host-again"),
        bindings=("packed", "spread"),
        missing={"remote": "one NUMA node"},
    )
    assert sentence(campaign, "spread ranks").startswith(
        "On the host, the median cell takes 1.10 times as long"
    )
    assert sentence(campaign, "distant buffer") == "Not measured. remote: one NUMA node"


def emulated(*launches: dict[str, Any], **levels: Any) -> Campaign:
    """Campaign of an emulated machine with these places."""
    arms, machine = ("vm-knl-snc4-flat", "vm-docker-knl-snc4-flat-tuned-one"), "knl-snc4-flat (tcg)"
    campaign = find(arms=arms, machine=machine, emulated=False, blocks=2, **levels)
    return changed(campaign, page_maps=page_maps(launches))


def test_an_emulated_machine_answers_where_pages_were_and_nothing_about_time() -> None:
    where, time = answers(emulated(make_launch(), make_launch(binding="spread")))
    assert where.sentence == (
        "Every page of every rank was on the nodes asked for, in every kind and launch."
    )
    starts = [point.partition(".")[0] for point in where.points]
    assert starts == ["8 ranks packed", "8 ranks spread"]
    assert (where.figure, time.figure) == ("placement-map", "")
    assert time.sentence.startswith("Not answered, and not to be answered here. Emulated machine")
    assert not any(" times as " in reply.sentence for reply in (where, time))


def test_pages_that_strayed_are_no_success() -> None:
    usual: dict[str, Any] = {"kinds": ("hbw_preferred",), "localities": ("local",)}
    moved = make_launch(**usual, placed={("hbw_preferred", "local", 0): {0: 2**21}})
    where, _ = answers(emulated(moved))
    assert where.sentence == (
        "Not always where asked: of 8 pairs of a rank and a kind of memory, 1 had pages elsewhere."
    )


def test_pages_of_which_nothing_is_reported_are_no_success() -> None:
    launch = make_launch(kinds=("hbw",), localities=("local",))

    def silence(ranks: int) -> str:
        for rank in launch["ranks"][:ranks]:
            rank["pools"][0].pop("bytes", None)
            rank["pools"][0]["placement"] = {}
        return sentence(emulated(launch), "Where was every rank")

    assert silence(1) == (
        "Every known page was on the nodes asked for. "
        "No page of 1 of 8 pairs of a rank and a kind of memory is known."
    )
    assert silence(8) == "Not measured. The results name no page."


def test_what_an_emulated_campaign_could_not_measure_is_reported() -> None:
    message = [reply.sentence for reply in answers(emulated(missing={"remote": "one node"}))]
    assert message[-1] == "Not measured. remote: one node"


def test_on_a_real_machine_places_are_an_answer_where_there_is_more_than_one_node() -> None:
    one = changed(find(), page_maps=page_maps([make_launch("plain", ranks=2, emulated="")]))
    assert not any("where was every page" in reply.question for reply in answers(one))
    several = changed(find(), page_maps=page_maps([make_launch(emulated="")]))
    assert answer(several, "where was every page") and answer(several, "faster")


def test_gloo_and_hbm_are_held_against_each_other_beside_direct() -> None:
    campaign = find(transports=("direct", "gloo", "torch"), blocks=8)
    asked = {reply.question: reply.sentence for reply in answers(campaign)}
    assert asked["How much slower than torch is gloo?"].count("with gloo as with torch") == 1
    assert "How much slower than direct is torch?" in asked
    assert "How much slower than torch is gloo?" not in {a.question for a in answers(find())}
