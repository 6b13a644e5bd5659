"""How to train: every field is a flag and a YAML key."""

# No postponed annotations here: the command line reads the fields' types where they are inherited, in other modules.
import math
from dataclasses import dataclass
from typing import Literal

from paramixer.nn.config import check_types
from paramixer.recipes.presets import Recipe


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How to train. What is None follows the paper's recipe for the task's preset."""

    epochs: int | None = None
    """Passes over the training data; None for the paper's, unless steps or minutes are given."""
    steps: int | None = None
    """Stop after so many optimizer steps."""
    minutes: float | None = None
    """Stop after so many minutes of training."""
    until: str | None = None
    """Stop when validation reaches this, such as accuracy=0.98 or error=0.005."""
    patience: int | None = None
    """Stop after so many evaluations without a better one."""
    batch: int | None = None
    """Sequences a step and process; None for the paper's."""
    accumulate: int = 1
    """Batches whose gradients are added up for one step."""
    optimizer: Literal["adam", "adamw"] = "adam"
    """Adam as in the paper, or AdamW."""
    learning_rate: float | None = None
    """Step size; None for the paper's."""
    link_rate: float | None = None
    """Step size of the link MLPs, as a share of learning_rate; None for 1. Mixing is a product of all factors, so that
    small steps in each are a large one together: 0.03 where a chain must average over thousands of positions."""
    head_rate: float | None = None
    """Step size of the head's weights, as a share of learning_rate; None for 1. A flat head reads every position at
    once: about one over their number where all of them tell the same."""
    settle: bool | None = None
    """Whether every g is shifted and scaled on a few training sequences before the first step, so that what the head
    reads is centred and of size one; for long sequences that differ little from their mean."""
    weight_decay: float = 0.0
    """Of AdamW."""
    schedule: Literal["constant", "cosine"] | None = None
    """Whether the step size stays, or falls to zero along a cosine over the steps, epochs or minutes asked for; None
    for constant."""
    warmup: int | None = None
    """Steps over which the step size rises from zero; None for none."""
    clip: float | None = None
    """Largest norm of the gradient, 0 for no clipping; None for the paper's."""
    evaluate_every: int | None = None
    """Steps from one look at validation to the next; None for once an epoch."""
    save_every: float = 5.0
    """Minutes from one checkpoint to the next; every evaluation makes one too."""
    log_every: int = 10
    """Steps from one line of metrics.jsonl to the next."""
    bucket: bool | None = None
    """Whether batches are made of sequences of similar length; None for where lengths vary."""
    precision: Literal["float32", "bf16"] = "float32"
    """bf16 runs the model under autocast."""
    compile: bool = False
    """Whether the model is compiled by torch.compile."""
    deterministic: bool = False
    """Whether torch is told to refuse operations whose results vary from run to run."""
    workers: int = 0
    """Processes that load data; 0 for none beside the main one."""
    tensorboard: bool = False
    """Whether metrics are written for TensorBoard too, into the run folder; needs the package tensorboard."""

    def __post_init__(self) -> None:
        check_types(self)
        rates = ("learning_rate", "link_rate", "head_rate")
        for name in ("epochs", "steps", "minutes", "patience", "batch", "accumulate", *rates, "save_every"):
            number = getattr(self, name)
            if number is not None and not 0 < number < math.inf:
                raise ValueError(f"{name}={number}; it must be positive")
        for name in ("warmup", "weight_decay", "clip", "workers"):
            number = getattr(self, name)
            if number is not None and not 0 <= number < math.inf:
                raise ValueError(f"{name}={number}; it must not be negative")
        if self.log_every < 1:
            raise ValueError(f"log_every={self.log_every}; it must be at least 1")
        if self.evaluate_every is not None and self.evaluate_every < 1:
            raise ValueError(f"evaluate_every={self.evaluate_every}; it must be at least 1")
        if self.weight_decay and self.optimizer == "adam":
            raise ValueError("weight_decay goes with optimizer='adamw'")
        if self.schedule == "cosine" and self.steps is None and self.epochs is None and self.minutes is None:
            raise ValueError("schedule='cosine' needs to know the end; give steps, epochs or minutes")
        if self.until is not None:
            goal(self.until)

    def resolved(self, recipe: Recipe) -> "TrainingOptions":
        """The same with the recipe's numbers where nothing was said."""
        bounded = self.steps is not None or self.minutes is not None
        known = vars(self) | {
            "epochs": self.epochs if self.epochs is not None or bounded else recipe.epochs,
            "batch": self.batch or recipe.batch,
            "learning_rate": self.learning_rate or recipe.learning_rate,
            "clip": self.clip if self.clip is not None else recipe.clip or 0.0,
        }
        plain = {"link_rate": 1.0, "head_rate": 1.0, "settle": False, "schedule": "constant", "warmup": 0}
        return TrainingOptions(**known | {name: value for name, value in plain.items() if known[name] is None})


def goal(text: str) -> tuple[str, float]:
    """The metric and the value of ``METRIC=VALUE``."""
    name, _, value = text.partition("=")
    try:
        return name.strip(), float(value)
    except ValueError:
        raise ValueError(f"until={text!r}; write METRIC=VALUE, such as accuracy=0.98") from None
