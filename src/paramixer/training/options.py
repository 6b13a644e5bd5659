"""How to train: settings that ``--set training.KEY=VALUE`` and a recipe's section ``training`` may give."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from paramixer.validation import Count, Positive, Probability, settings

NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@settings
class TrainingOptions:
    """How to train. The recipe sets what is None."""

    epochs: Count | None = None
    """Passes over the training data; None for the recipe's, unless steps or minutes are given."""
    steps: Count | None = None
    """Stop after so many optimizer steps."""
    minutes: Positive | None = None
    """Stop after so many minutes of training."""
    until: str | None = None
    """Stop when validation reaches this, such as accuracy=0.98 or error=0.005."""
    patience: Count | None = None
    """Stop after so many evaluations without an improvement."""
    balance: bool = False
    """Whether all classes count alike in training, however many sequences each has."""
    label_smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """The share of a class's target that goes to all classes alike."""
    batch: Count | None = None
    """Batch size per process."""
    accumulate: Count = 1
    """Batches whose gradients are added up for one step."""
    optimizer: Literal["adam", "adamw"] | None = None
    """Adam or AdamW."""
    learning_rate: Positive | None = None
    """Learning rate."""
    beta2: Probability | None = None
    """How slowly Adam's second moments forget; None for the recipe's, or 0.999. Short runs do better with less."""
    weight_decay: NonNegative | None = None
    """Weight decay of AdamW, for the weights of linear layers."""
    schedule: Literal["constant", "cosine"] | None = None
    """Whether the learning rate is constant, or falls to zero along a cosine over the steps, epochs or minutes."""
    warmup: Annotated[int, Field(ge=0)] | None = None
    """Steps over which the learning rate rises from zero."""
    clip: NonNegative | None = None
    """Largest norm of the gradient; 0 for no clipping."""
    evaluate_every: Count | None = None
    """Steps between evaluations on validation; None for once per epoch."""
    save_every: Positive = 5.0
    """Minutes between checkpoints; every evaluation writes one too."""
    log_every: Count = 10
    """Steps between lines of metrics.jsonl."""
    bucket: bool | None = None
    """Whether batches hold sequences of similar length; None for where lengths vary."""
    precision: Literal["float32", "bf16"] = "float32"
    """bf16 runs the model under autocast."""
    compile: bool = False
    """Whether torch.compile compiles the model."""
    deterministic: bool = False
    """Whether torch refuses operations whose results vary from run to run."""
    workers: Annotated[int, Field(ge=0)] = 0
    """Processes that load data; 0 for none beside the main one."""
    tensorboard: bool = False
    """Whether metrics are also written for TensorBoard into the run folder; needs the package tensorboard."""

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        if self.weight_decay and self.optimizer == "adam":
            raise ValueError(f"weight_decay={self.weight_decay} needs optimizer='adamw'; Adam has no weight decay")
        if self.until is not None:
            parse_goal(self.until)
        return self

    @property
    def bounded(self) -> bool:
        """Whether epochs, steps or minutes say when training ends."""
        return self.epochs is not None or self.steps is not None or self.minutes is not None


def parse_goal(text: str) -> tuple[str, float]:
    """Return metric and value of ``METRIC=VALUE``."""
    name, _, value = text.partition("=")
    try:
        return name.strip(), float(value)
    except ValueError:
        raise ValueError(f"until={text!r}; write METRIC=VALUE, such as accuracy=0.98") from None
