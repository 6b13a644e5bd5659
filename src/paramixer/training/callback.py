"""What a callback of the training loop is, and the progress that it sees."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paramixer.training.loop import Loop


class Interrupted(KeyboardInterrupt):
    """Training was asked to stop; everything is saved where there is a run folder."""


@dataclass
class Progress:
    """Where a run is."""

    step: int = 0
    """Optimizer steps done."""
    epoch: int = 0
    """Epochs done."""
    position: int = 0
    """Steps done in the current epoch."""
    batch: int = 0
    """Sequences per step, of all processes together."""
    seconds: float = 0.0
    """Time spent training, up to the last checkpoint."""
    tokens: int = 0
    """Positions seen."""
    best: float | None = None
    """The best validation metric."""
    best_loss: float | None = None
    """The loss that came with it."""
    worse: int = 0
    """Evaluations since then."""
    chosen: float | None = None
    """The validation metric of the weights that are kept."""
    best_step: int | None = None
    """The step at which they were."""
    recent_losses: list[float] = field(default_factory=list)
    """Losses of the last evaluations."""
    best_mean_loss: float | None = None
    """The least mean of so many losses."""
    best_mean_step: int | None = None
    """The step at which it was reached."""
    training_loss: float | None = None
    """A mean of the training losses in which the last steps count most."""
    best_training_loss: float | None = None
    """That mean at ``best_mean_step``."""
    flat: int = 0
    """Evaluations since then."""
    cooling: int | None = None
    """The step from which the learning rate falls to zero, as there was no improvement for so long."""
    overfitting: int | None = None
    """The step at which it was noticed that validation gets worse while training gets better."""
    lines: int = 0
    """Lines of metrics.jsonl that belong to this state."""
    evaluated: int | None = None
    """The step of the last evaluation."""
    loss_sum: float = 0.0
    """Sum of the training losses since the last line."""
    loss_count: int = 0
    """Steps since the last line."""


class Callback:
    """What surrounds the loop. Every method may be left out; callbacks are called in the order they are given."""

    def on_start(self, loop: Loop) -> None:
        """Training is about to start, or to go on."""

    def on_step(self, loop: Loop) -> None:
        """An optimizer step is done."""

    def on_evaluation(self, loop: Loop, metrics: dict[str, float], improved: bool) -> None:
        """The validation split was evaluated; where ``improved``, these weights are kept unless later ones are."""

    def on_interrupt(self, loop: Loop) -> None:
        """Training stops here and may go on later."""

    def on_end(self, loop: Loop) -> None:
        """Training is complete."""

    def stop_reason(self, loop: Loop) -> str | None:
        """Return why training should end now; None to go on."""
        return None
