"""What a workload is: something that is measured as an operation, by contenders of its own."""

from dataclasses import dataclass

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
        nbytes: the bytes of its only cell, such as those of a network's gradients; 0: it has the
            sizes of the campaign.
        computes: it computes as well. The same without communication takes turns with it as
            NO_TRANSPORT, and bounds it.
    """

    title: str
    contenders: tuple[str, ...]
    program: str = ""
    grain: int = 4
    held: int = 0
    nbytes: int = 0
    computes: bool = False

    @property
    def family(self) -> tuple[str, str]:
        """What the workloads of one campaign have in common."""
        return self.program, self.contenders[0]


def gradient_lengths(network: str) -> list[int]:
    """Elements of each gradient of a network of hbmcomm.training.networks, first layer first."""
    return [elements for _, elements in gradients(network)]


def gradient_bytes(network: str) -> int:
    """Bytes of all gradients of a network."""
    return 4 * sum(gradient_lengths(network))
