"""When hosts exchange parameters: phases of the training, skipped batches, plateaus of the loss.

Plain numbers, the same on all ranks. It knows neither parameters nor communicators.
"""

from __future__ import annotations

import math
from typing import Any

_KEPT = ("epoch", "batch", "skips", "exchanges", "best", "worse")


class Schedule:
    """The batches at which exchanges between hosts begin and end.

    Training begins with `warmup` epochs and ends with `cooldown` epochs of *blocking* batches:
    gradients are averaged over all ranks. In the epochs between, an exchange begins after the first
    batch and every `skips` batches from there, and ends `wait` batches later. A plateau of the loss
    halves both; at one skipped batch it resets them.

    Args:
        epochs: Of the whole training.
        warmup, cooldown: Blocking epochs at its begin and end.
        skips: Batches from the begin of an exchange to the next, B in the paper.
        wait: Batches from its begin to its end, S in the paper; left out: a quarter of `skips`.
        threshold: A loss improves if it is lower than the best by this share.
        patience: Epochs without improvement after which the loss is on a plateau.

    Attributes:
        epoch, batch: Finished epochs, and finished batches of this epoch.
        skips: The present number.
        exchanges: How many have begun.

    Raises:
        ValueError: A number is out of its range.
    """

    def __init__(
        self,
        epochs: int,
        warmup: int = 4,
        cooldown: int = 4,
        skips: int = 4,
        wait: int | None = None,
        threshold: float = 0.05,
        patience: int = 2,
    ) -> None:
        wait = max(1, skips // 4) if wait is None else wait
        for name, number, least, most in (
            ("epochs", epochs, 1, math.inf),
            ("warmup", warmup, 0, math.inf),
            ("cooldown", cooldown, 0, math.inf),
            ("skips", skips, 1, math.inf),
            ("wait", wait, 1, skips),
            ("patience", patience, 0, math.inf),
            ("threshold", threshold, 0, 1),
        ):
            if not least <= number <= most:
                raise ValueError(f"{name}={number}: give a number from {least} to {most}")
        self.epochs, self.warmup, self.cooldown = epochs, warmup, cooldown
        self._first_skips, self._first_wait = skips, wait
        self._threshold, self._patience = threshold, patience
        self.epoch, self.batch, self.skips, self.exchanges = 0, 0, skips, 0
        self.best, self.worse = math.inf, 0

    @property
    def wait(self) -> int:
        """Batches from the begin of an exchange to its end."""
        return max(1, self._first_wait * self.skips // self._first_skips)

    @property
    def is_warming_up(self) -> bool:
        """Whether no exchange has been due yet."""
        return self.epoch < self.warmup

    @property
    def is_blocking(self) -> bool:
        """Whether gradients are averaged over all ranks at every batch."""
        return self.is_warming_up or self.epoch >= self.epochs - self.cooldown

    @property
    def begins_exchange(self) -> bool:
        """Whether one begins after the batch that was finished last."""
        return not self.is_blocking and (self.batch - 1) % self.skips == 0

    def end_batch(self) -> None:
        self.batch += 1

    def end_epoch(self, loss: float) -> None:
        """Count an epoch; `loss` is its mean over all ranks."""
        if not self.is_blocking and self._is_on_plateau(loss):
            self.skips = self.skips // 2 or self._first_skips
        self.epoch, self.batch = self.epoch + 1, 0

    def _is_on_plateau(self, loss: float) -> bool:
        """Whether the loss has not improved for more epochs than `patience`."""
        if loss < self.best * (1 - self._threshold):
            self.best, self.worse = loss, 0
            return False
        self.worse += 1
        if self.worse <= self._patience:
            return False
        self.worse = 0
        return True

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` takes."""
        return {name: getattr(self, name) for name in _KEPT}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where the schedule of this state was."""
        for name in _KEPT:
            setattr(self, name, state[name])
