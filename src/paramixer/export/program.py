"""A model as a program of torch's own operators, for any batch size and length."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.export import Dim, ExportedProgram

from paramixer.export.lowering import lowered_ops
from paramixer.nn.pretrained import PretrainedModel

INPUTS, LENGTHS, ANSWERS = "inputs", "lengths", "answers"
# More than any machine holds; torch wants a bound.
_MOST_SEQUENCES = 2**31 - 1


def takes_lengths(model: PretrainedModel) -> bool:
    """Return whether sequences may be shorter than the model's length, and come with their lengths."""
    return model.config.padding == "length" or model.config.pad is not None


def shortest_width(model: PretrainedModel) -> int:
    """Return the least width of a batch; a shorter sequence is padded, and its length tells where it ends."""
    if not takes_lengths(model):
        return model.config.length
    window = getattr(model.config, "window", None)
    # Tracing takes a dimension of one window for a constant.
    wide = 1 if model.model_type != "paramixer" or window == 1 or window is None else window + 1
    return min(wide, model.config.length)


def sample_inputs(model: PretrainedModel, batch: int, width: int, seed: int = 0) -> tuple[Tensor, ...]:
    """Return random inputs of a model, and lengths where it takes them: the first sequence is full."""
    config, generator = model.config, torch.Generator().manual_seed(seed)
    inputs = (
        torch.randint(config.vocabulary, (batch, width), generator=generator)
        if config.vocabulary is not None
        else torch.randn(batch, width, config.features or 1, generator=generator)
    )
    if not takes_lengths(model):
        return (inputs,)
    lengths = torch.randint(1, width + 1, (batch,), generator=generator)
    lengths[0] = width
    return inputs, lengths


@torch.no_grad()
def trace(model: PretrainedModel) -> ExportedProgram:
    """Return the program of a model in evaluation mode; raise a ValueError where it cannot be traced."""
    config, lengths = model.config, takes_lengths(model)
    least = shortest_width(model)
    batch = Dim("batch", min=1, max=_MOST_SEQUENCES)
    axes: dict[int, Any] = {0: batch}
    # Width and batch of the sample are no special cases: neither one nor the bounds.
    width = config.length
    if lengths and least < config.length:
        axes[1] = Dim("length", min=least, max=config.length)
        width = max(2, least, config.length - 1)
    shapes = (axes, {0: batch})[: 1 + lengths]
    try:
        with quiet():
            program = torch.export.export(model, sample_inputs(model, 3, width), dynamic_shapes=shapes, strict=False)
            lowered: ExportedProgram = program.run_decompositions(lowered_ops())
        return lowered
    # Whatever a model does that torch cannot trace: among its errors are RuntimeErrors and errors of its own.
    except Exception as error:
        raise ValueError(
            f"the model cannot be exported, because torch.export cannot trace it: {_first_line(error)}"
        ) from error


def check_outputs(model: PretrainedModel, run: Any, what: str, tolerance: float) -> float:
    """Return the largest difference between a model and its export, relative to answers above 1.

    Args:
        model: in evaluation mode.
        run: takes inputs by name and returns answers.
        what: the export, for the error.
        tolerance: the largest difference that is right.
    """
    worst = 0.0
    for seed, (batch, width) in enumerate(check_shapes(model)):
        arguments = sample_inputs(model, batch, width, seed)
        with torch.no_grad():
            expected = model(*arguments)
            found = run(dict(zip((INPUTS, LENGTHS), arguments, strict=False)))
        if found.shape != expected.shape:
            raise ValueError(
                f"{what} answers {batch} sequences of {width} with shape {list(found.shape)}, the model with "
                f"{list(expected.shape)}; nothing was written"
            )
        difference = float((found - expected).abs().max() / expected.abs().max().clamp(min=1))
        # Not >: NaN is wrong, too.
        if not difference <= tolerance:
            raise ValueError(
                f"{what} differs from the model by {difference:.2g} for {batch} sequences of {width}, more than "
                f"{tolerance:g} (change with --tolerance); nothing was written"
            )
        worst = max(worst, difference)
    return worst


def check_shapes(model: PretrainedModel) -> list[tuple[int, int]]:
    """Return batch sizes and widths on which an export is compared with the model."""
    least, length = shortest_width(model), model.config.length
    # A long one once: it is slow.
    widths = sorted({least, least + 1, (least + min(length, 300)) // 2, min(length, 301), length})
    return [
        (1 + number * 2 % 5 if width < 2000 else 1, width) for number, width in enumerate(widths) if width <= length
    ]


def input_document(model: PretrainedModel) -> Mapping[str, Any]:
    """Return what a caller of the export must know of its inputs, for JSON."""
    return {
        "inputs": [INPUTS, LENGTHS] if takes_lengths(model) else [INPUTS],
        "outputs": [ANSWERS],
        "shortest_width": shortest_width(model),
        "longest_width": model.config.length,
    }


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep from the user what torch's exporters tell of themselves and of packages that are not installed."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        sink = io.StringIO()
        with warnings.catch_warnings(), contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[:300]
