"""A launch that no driver gives orders: rank 0 decides as the driver would."""

import random
from collections.abc import Callable, Sequence

from mpi4py import MPI

from experiments.model.experiment import Measurement
from experiments.schedule.turns import Action, Answer, Order, conduct


def conduct_alone(
    comm: MPI.Intracomm,
    carry_out: Callable[[Order], Answer],
    contests: Sequence[Sequence[int]],
    asked: Measurement,
    rng: random.Random,
) -> None:
    """Carry out what rank 0 decides by turns.conduct(), as a driver would; a collective."""

    def of_all(order: Order) -> Answer:
        comm.bcast(order)
        return Answer() if order.action is Action.LEAVE else carry_out(order)

    if comm.rank == 0:
        conduct({"": lambda given: [of_all(order) for order in given]}, contests, asked, rng)
    else:
        while (order := comm.bcast(None)).action is not Action.LEAVE:
            carry_out(order)
