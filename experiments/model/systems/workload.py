"""What a workload is: something that is measured as an operation, by contenders of its own."""

from dataclasses import dataclass
from functools import cached_property

from hbmcomm.training.networks import gradients


@dataclass(frozen=True)
class Workload:
    """One workload.

    Attributes:
        title: as figures and tables name it.
        contenders: what can carry it; the first is this library's, which the others are compared
            with.
        program: the module of experiments/programs/workloads that makes its contenders; "": they
            are process groups of torch.
        grain: the bytes of a cell are multiples of it.
        held: how many times the bytes of a cell each contender holds at most, besides its buffers.
        network: of hbmcomm.training.networks; its only cell has the bytes of all gradients.
        elements: of its only cell, where that is not a network's.
    """

    title: str
    contenders: tuple[str, ...]
    program: str = ""
    grain: int = 4
    held: int = 0
    network: str = ""
    elements: int = 0

    @property
    def family(self) -> tuple[str, str]:
        """What the workloads of one campaign have in common."""
        return self.program, self.contenders[0]

    @cached_property
    def lengths(self) -> list[int]:
        """Elements of each gradient of its network, first layer first; empty without a network."""
        return [elements for _, elements in gradients(self.network)] if self.network else []

    @cached_property
    def nbytes(self) -> int:
        """Bytes of its only cell; 0: it has the sizes of the campaign."""
        return 4 * (self.elements or sum(self.lengths))
