"""Explain a model's answer to one sequence: which positions mix with which, and which speak for the class.

Everything is a product of the chain with vectors; no N x N array is formed. Rows and columns of a chain's mixing matrix
are exact; the paper's network has a chain for each block, the default network one for each head of each layer. Across
blocks there are two summaries: the product of the blocks' mixing matrices, a rollout that leaves out what g does in
between, and the exact norm of the derivative of a position's values with respect to every position of the input. The
rollout is the paper's network's alone: layers have norms and gates between their chains. Derivatives, evidence and
occlusion need no mixing matrix and work for baselines too.

Where windows of several positions are mixed as one, all positions of a window have the window's numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from paramixer.nn.layer import ParamixerLayer
from paramixer.nn.model import Paramixer
from paramixer.nn.paper import PaperParamixer
from paramixer.nn.sequence_model import Embedded, SequenceModel

# How many occluded copies of a sequence make a batch.
_OCCLUSION_BATCH = 8
# By default there are at most so many occluded windows.
_WINDOWS = 64

T = TypeVar("T")


class Progress(Protocol):
    """Passes items on, one per forward or backward pass, and may show how many there were."""

    def __call__(self, items: Sequence[T], what: str) -> Iterable[T]:
        """Return the same items."""


def no_progress(items: Sequence[T], what: str) -> Iterable[T]:
    """Return the items and show nothing."""
    return items


@dataclass(frozen=True)
class Explanation:
    """An explanation of one sequence of ``length`` positions; maps have a row for each chosen position."""

    positions: tuple[int, ...]
    """The chosen positions."""
    length: int
    """How many positions of the sequence count."""
    answer: Tensor
    """The model's answer ``[outputs]``, or a single value."""
    target: int | None
    """The class that the evidence is for; None for a value."""
    chains: tuple[str, ...]
    """Names of the chains, such as "block 1" or "layer 2, head 3". Empty for a baseline."""
    rows: Tensor | None
    """``[chains, positions, length]``: rows of each chain's mixing matrix. None for a baseline."""
    columns: Tensor | None
    """``[chains, positions, length]``: columns of each chain's mixing matrix. None for a baseline."""
    rollout: Tensor | None
    """``[positions, length]``: rows of the product of all mixing matrices. None but for the paper's network."""
    jacobian: Tensor | None
    """``[positions, length]``: norm of the derivative of a position's final values with respect to every position's
    input. None without derivatives."""
    evidence: Tensor
    """``[length]``: gradient times input of the class (or value), summed over channels."""
    occlusion: Tensor
    """``[length]``: by how much the score falls when the window around a position is occluded."""
    window: int
    """Positions in such a window."""


def explain(
    model: SequenceModel,
    inputs: Tensor,
    positions: Sequence[int] | None = None,
    *,
    target: int | None = None,
    window: int | None = None,
    derivatives: bool = True,
    progress: Progress = no_progress,
) -> Explanation:
    """Explain a model's answer to one sequence.

    Args:
        model: evaluated in evaluation mode; its mode is restored.
        inputs: token ids ``[length]`` or numbers ``[length, features]``.
        positions: whose rows and columns to compute; by default the position that the head reads, or the one with the
            strongest evidence if the head reads all of them.
        target: the class to explain; by default the one the model predicts.
        window: positions occluded at a time; by default so many that there are at most 64 windows.
        derivatives: whether to compute the derivatives, which take a pass for every position and channel.
        progress: receives what takes a pass each, with a description, and passes it on.
    """
    if not isinstance(inputs, Tensor):
        raise TypeError(f"inputs are a {type(inputs).__name__}, expected a torch.Tensor")
    if not isinstance(model, SequenceModel):
        raise TypeError(f"a {type(model).__name__} has no embedding to explain; give a Paramixer or a baseline's model")
    _check_arguments(model, inputs, positions, target, window)
    was_training = model.training
    model.eval()
    try:
        # Derivatives are needed here even if the caller is in inference mode.
        with torch.inference_mode(False):
            return _explain(model, inputs.clone(), positions, target, window, derivatives, progress)
    finally:
        model.train(was_training)


def _check_arguments(
    model: SequenceModel,
    inputs: Tensor,
    positions: Sequence[int] | None,
    target: int | None,
    window: int | None,
) -> None:
    config = model.config
    if config.pooling == "token":
        raise ValueError("a model that answers at every position has no single answer to explain")
    outside = [position for position in positions or () if not 0 <= position < len(inputs)]
    if outside:
        raise ValueError(f"position {outside[0]} is outside the sequence, 0 to {len(inputs) - 1}")
    if window is not None and window < 1:
        raise ValueError(f"window={window}; it must be at least 1")
    if target is not None and (config.target != "class" or not 0 <= target < config.outputs):
        raise ValueError(f"target={target}; the model has {config.outputs} outputs of kind {config.target}")


def _explain(
    model: SequenceModel,
    inputs: Tensor,
    positions: Sequence[int] | None,
    target: int | None,
    window: int | None,
    derivatives: bool,
    progress: Progress,
) -> Explanation:
    length, stride = len(inputs), model.window
    with torch.no_grad():
        # Without the tokens: values are changed and differentiated below.
        embedded = model.embed(inputs[None])._replace(tokens=None)
        answer = _answer(model, embedded)[0]
    mixed = -(-length // stride)
    if model.config.target == "class" and target is None:
        target = int(answer.argmax())

    def by_position(of_windows: Tensor) -> Tensor:
        return of_windows[..., :mixed].repeat_interleave(stride, -1)[..., :length]

    shares = model.bag_shares(inputs[None]) if embedded.bag is not None and isinstance(model, Paramixer) else None
    evidence = _compute_evidence(model, embedded, target, shares)
    if positions is None:
        positions = [0 if model.config.pooling == "cls" else int(by_position(evidence).abs().argmax())]
    places = [position // stride for position in positions]
    rows = columns = rollout = None
    if isinstance(model, Paramixer):
        rows, columns = (by_position(maps) for maps in _compute_maps(model, embedded, places))
        if isinstance(model, PaperParamixer):
            rollout = _compute_rollout(model, embedded, places)[:, :length]
    # A whole number of windows of the model.
    window = -(-(window or -(-length // _WINDOWS)) // stride) * stride
    occlusion = _compute_occlusion(model, embedded, target, shares, mixed, window // stride, progress)
    return Explanation(
        positions=tuple(positions),
        length=length,
        answer=answer,
        target=target,
        chains=name_chains(model),
        rows=rows,
        columns=columns,
        rollout=rollout,
        jacobian=by_position(_compute_jacobian(model, embedded, places, progress)) if derivatives else None,
        evidence=by_position(evidence) / stride,
        occlusion=by_position(occlusion),
        window=window,
    )


def name_chains(model: SequenceModel) -> tuple[str, ...]:
    """Return the names of a model's chains, such as "block 1" or "layer 2, head 3"; none for a baseline."""
    if not isinstance(model, Paramixer):
        return ()
    names = []
    for number, block in enumerate(model.paramixer_blocks(), 1):
        if isinstance(block, ParamixerLayer):
            names += [f"layer {number}, head {head}" for head in range(1, block.heads + 1)]
        else:
            names.append(f"block {number}")
    return tuple(names)


def _answer(model: SequenceModel, embedded: Embedded) -> Tensor:
    return model.answer(model.mix(embedded), embedded)


def _compute_maps(model: Paramixer, embedded: Embedded, positions: Sequence[int]) -> list[Tensor]:
    """Return rows and columns of every chain's mixing matrix, each ``[chains, positions, N]``."""
    blocks = list(zip(model.paramixer_blocks(), model.link_inputs(embedded), strict=True))
    rows = [block.mixing_rows(inputs, positions, embedded.lengths)[0] for block, inputs in blocks]
    columns = [block.mixing_columns(inputs, positions, embedded.lengths)[0] for block, inputs in blocks]
    # With heads a block has several chains.
    return [torch.cat([part.reshape(-1, *part.shape[-2:]) for part in maps]) for maps in (rows, columns)]


def _compute_rollout(model: PaperParamixer, embedded: Embedded, positions: Sequence[int]) -> Tensor:
    """Return rows of the product of all blocks' mixing matrices, ``[positions, N]``."""
    vectors = embedded.values.new_zeros(1, embedded.values.shape[1], len(positions))
    vectors[0, list(positions), range(len(positions))] = 1
    blocks = list(zip(model.paramixer_blocks(), model.link_inputs(embedded), strict=True))
    for block, inputs in reversed(blocks):
        vectors = block.multiply_transposed(inputs, vectors, embedded.lengths)
    return vectors[0].T


def _compute_jacobian(model: SequenceModel, embedded: Embedded, positions: Sequence[int], progress: Progress) -> Tensor:
    """Return the norm of the derivative of each position's mixed values by each position of X0, ``[positions, N]``."""
    start = embedded.values.detach().requires_grad_()
    with torch.enable_grad():
        mixed = model.mix(embedded._replace(values=start))
        norms = start.new_zeros(len(positions), start.shape[1])
        for row, position in zip(norms, positions, strict=True):
            for value in progress(mixed[0, position].unbind(), "derivatives of the channels"):
                (gradient,) = torch.autograd.grad(value, start, retain_graph=True)
                row += gradient[0].square().sum(-1)
    return norms.sqrt()


def _score(answer: Tensor, target: int | None) -> Tensor:
    """Return what is explained: the class's logit minus the mean of the others', or the value itself."""
    if target is None:
        return answer if answer.dim() == 1 else answer.sum(-1)
    others = (answer.sum(-1) - answer[:, target]) / max(1, answer.shape[1] - 1)
    return answer[:, target] - others


def _compute_evidence(model: SequenceModel, embedded: Embedded, target: int | None, shares: Tensor | None) -> Tensor:
    """Return gradient times input of the score, ``[N]``; the shares in the bag of n-grams are inputs, too."""
    start = embedded.values.detach().requires_grad_()
    inputs = [start] if shares is None else [start, shares.detach().requires_grad_()]
    with torch.enable_grad():
        bag = None if shares is None else inputs[1].sum(1)
        score = _score(_answer(model, embedded._replace(values=start, bag=bag)), target)
        gradients = torch.autograd.grad(score.sum(), inputs)
    parts = [(gradient * each.detach())[0].sum(-1) for gradient, each in zip(gradients, inputs, strict=True)]
    return torch.stack(parts).sum(0)


@torch.no_grad()
def _compute_occlusion(
    model: SequenceModel,
    embedded: Embedded,
    target: int | None,
    shares: Tensor | None,
    length: int,
    window: int,
    progress: Progress,
) -> Tensor:
    """Return by how much the score falls when a window is replaced by the mean of X0, ``[length]``.

    A window's share in the bag of n-grams is left out with it.
    """
    values, lengths = embedded.values, embedded.lengths
    full = _score(_answer(model, embedded), target)[0]
    mean = values[0, :length].mean(0)
    starts = range(0, length, window)
    falls = torch.empty(length, dtype=values.dtype, device=values.device)
    for first in progress(range(0, len(starts), _OCCLUSION_BATCH), "occluded windows"):
        batch = starts[first : first + _OCCLUSION_BATCH]
        occluded = values.repeat(len(batch), 1, 1)
        for row, start in zip(occluded, batch, strict=True):
            row[start : min(start + window, length)] = mean
        expanded = None if lengths is None else lengths.expand(len(batch))
        bag = None
        if shares is not None:
            bag = torch.stack([shares[0].sum(0) - shares[0, start : start + window].sum(0) for start in batch])
        scores = _score(_answer(model, Embedded(occluded, expanded, bag=bag)), target)
        for score, start in zip(scores, batch, strict=True):
            falls[start : start + window] = full - score
    return falls
