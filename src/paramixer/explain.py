"""Why a model answers what it answers: which positions mix with which, and which speak for the class.

Everything is a product of the chain with vectors; no N x N array is ever made. Rows and columns of a block's matrix are
exact. Across blocks there are two readings: the product of the blocks' matrices, called a rollout because it leaves out
what g does in between, and the exact size of the derivative of a position's values by every position of the input.
Derivatives and evidence need no mixing matrix and serve for every model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from paramixer.nn.block import ParamixerBlock
from paramixer.nn.model import Paramixer

# Every block with what its links are written from; None for a rival, which has no links.
Linked = list[tuple[ParamixerBlock, Tensor]] | None

T = TypeVar("T")


class Counter(Protocol):
    """Passes items on and may show how many there were."""

    def __call__(self, items: Sequence[T], what: str) -> Iterable[T]:
        """The same items."""


def uncounted(items: Sequence[T], what: str) -> Iterable[T]:
    """No progress at all."""
    return items


# Occluded copies of a sequence that are answered at a time.
_TOGETHER = 8


@dataclass(frozen=True)
class Explanation:
    """What was found out about one sequence of ``length`` positions; maps have a row for each chosen position."""

    positions: tuple[int, ...]
    """The chosen positions."""
    length: int
    """How many positions of the sequence count."""
    answer: Tensor
    """The model's answer ``[outputs]``, or a single value."""
    target: int | None
    """The class that the evidence is for; None for a value."""
    rows: Tensor | None
    """``[blocks, positions, length]``: what feeds each position within a block. None for a rival."""
    columns: Tensor | None
    """``[blocks, positions, length]``: what each position feeds within a block. None for a rival."""
    rollout: Tensor | None
    """``[positions, length]``: rows of the product of all blocks' matrices. None for a rival."""
    jacobian: Tensor | None
    """``[positions, length]``: norm of the derivative of a position's final values by every position's input. None
    where derivatives were not wanted."""
    evidence: Tensor
    """``[length]``: gradient times input of the class (or value), summed over channels."""
    occlusion: Tensor
    """``[length]``: by how much the answer falls when the window around a position is blotted out."""
    window: int
    """Positions in such a window."""


def explain(
    model: Paramixer,
    inputs: Tensor,
    positions: Sequence[int] | None = None,
    *,
    target: int | None = None,
    window: int | None = None,
    derivatives: bool = True,
    count: Counter = uncounted,
) -> Explanation:
    """Explain a model's answer to one sequence.

    Args:
        model: is put into evaluation mode, and back.
        inputs: token ids ``[length]`` or numbers ``[length, features]``.
        positions: whose rows and columns are wanted; by default the position that the head reads, or the one with the
            strongest evidence where it reads them all.
        target: the class to explain; by default the one the model chose.
        window: positions blotted out at a time; by default so many that there are at most 64 windows.
        derivatives: whether the derivatives are wanted, which take a pass for every position and channel.
        count: passes on what takes a pass each, with a word about it, and may show progress.
    """
    if not isinstance(inputs, Tensor):
        raise TypeError(f"inputs are a {type(inputs).__name__}, expected a torch.Tensor")
    was_training = model.training
    model.eval()
    try:
        # Derivatives are needed here, whatever the caller does.
        with torch.inference_mode(False):
            return _explained(model, inputs.clone(), positions, target, window, derivatives, count)
    finally:
        model.train(was_training)


def _explained(
    model: Paramixer,
    inputs: Tensor,
    positions: Sequence[int] | None,
    target: int | None,
    window: int | None,
    derivatives: bool,
    count_passes: Counter,
) -> Explanation:
    config = model.config
    if config.pooling == "token":
        raise ValueError("a model that answers at every position has no single answer to explain")
    count = len(inputs)
    outside = [place for place in positions or () if not 0 <= place < count]
    if outside:
        raise ValueError(f"position {outside[0]} is outside the sequence, 0 to {count - 1}")
    if window is not None and window < 1:
        raise ValueError(f"window={window}; it must be at least 1")
    if target is not None and (config.target != "class" or not 0 <= target < config.outputs):
        raise ValueError(f"target={target}; the model has {config.outputs} outputs of kind {config.target}")
    model._check(inputs[None])
    batch, lengths = model._padded(inputs[None], None)
    with torch.no_grad():
        first = model._embed(batch)
        answer = model.head(model._mixed(first, lengths), lengths)[0]
    if config.target == "class" and target is None:
        target = int(answer.argmax())
    evidence = _evidence(model, first, lengths, target, count)
    if positions is None:
        positions = [0 if config.pooling == "cls" else int(evidence.abs().argmax())]
    chosen = tuple(positions)
    linked = linked_blocks(model, first, lengths)
    # Windows that nobody asked for are as many as can be told apart at a glance.
    wide = window or max(1, -(-count // 64))
    return Explanation(
        positions=chosen,
        length=count,
        answer=answer,
        target=target,
        rows=_maps(linked, lengths, chosen, count, "rows"),
        columns=_maps(linked, lengths, chosen, count, "columns"),
        rollout=_rollout(linked, lengths, chosen, count),
        jacobian=_jacobian(model, first, lengths, chosen, count, count_passes) if derivatives else None,
        evidence=evidence,
        occlusion=_occlusion(model, first, lengths, target, count, wide, count_passes),
        window=wide,
    )


def linked_blocks(model: Paramixer, first: Tensor, lengths: Tensor | None) -> Linked:
    """Every block with what its links are written from; None if a block has none."""
    found = []
    values = first
    with torch.no_grad():
        for block in model.blocks:
            if not isinstance(block, ParamixerBlock):
                return None
            written_from = first if model.config.link_input == "first" else values
            found.append((block, written_from))
            values = block(values, written_from, lengths)
    return found


def _maps(linked: Linked, lengths: Tensor | None, positions: tuple[int, ...], count: int, which: str) -> Tensor | None:
    if linked is None:
        return None
    found = []
    for block, written_from in linked:
        product = block.mixing_rows if which == "rows" else block.mixing_columns
        found.append(product(written_from, positions, lengths)[0, :, :count])
    return torch.stack(found)


def _rollout(linked: Linked, lengths: Tensor | None, positions: tuple[int, ...], count: int) -> Tensor | None:
    if linked is None:
        return None
    inputs = linked[0][1]
    vectors = inputs.new_zeros(1, inputs.shape[1], len(positions))
    vectors[0, list(positions), range(len(positions))] = 1
    for block, written_from in reversed(linked):
        vectors = block.transposed(written_from, vectors, lengths)
    return vectors[0, :count].T


def _jacobian(
    model: Paramixer,
    first: Tensor,
    lengths: Tensor | None,
    positions: tuple[int, ...],
    count: int,
    count_passes: Counter,
) -> Tensor:
    start = first.detach().requires_grad_()
    with torch.enable_grad():
        mixed = model._mixed(start, lengths)
        rows = []
        for place in positions:
            squares = torch.zeros(first.shape[1], dtype=first.dtype, device=first.device)
            for value in count_passes(mixed[0, place].unbind(), "derivatives of the channels"):
                (gradient,) = torch.autograd.grad(value, start, retain_graph=True)
                squares += gradient[0].square().sum(-1)
            rows.append(squares.sqrt()[:count])
    return torch.stack(rows) if rows else first.new_empty(0, count)


def _score(answer: Tensor, target: int | None) -> Tensor:
    """What is explained: the class's logit against the mean of the others', or the value itself."""
    if target is None:
        return answer if answer.dim() == 1 else answer.sum(-1)
    others = (answer.sum(-1) - answer[:, target]) / max(1, answer.shape[1] - 1)
    return answer[:, target] - others


def _evidence(model: Paramixer, first: Tensor, lengths: Tensor | None, target: int | None, count: int) -> Tensor:
    start = first.detach().requires_grad_()
    with torch.enable_grad():
        score = _score(model.head(model._mixed(start, lengths), lengths), target)
        (gradient,) = torch.autograd.grad(score.sum(), start)
    return (gradient * first)[0, :count].sum(-1)


@torch.no_grad()
def _occlusion(
    model: Paramixer,
    first: Tensor,
    lengths: Tensor | None,
    target: int | None,
    count: int,
    window: int,
    count_passes: Counter,
) -> Tensor:
    whole = _score(model.head(model._mixed(first, lengths), lengths), target)[0]
    blank = first[0, :count].mean(0)
    starts = range(0, count, window)
    falls = torch.empty(count, dtype=first.dtype, device=first.device)
    for begin in count_passes(range(0, len(starts), _TOGETHER), "windows blotted out"):
        some = starts[begin : begin + _TOGETHER]
        blotted = first.repeat(len(some), 1, 1)
        for row, start in enumerate(some):
            blotted[row, start : min(start + window, count)] = blank
        many = None if lengths is None else lengths.expand(len(some))
        scores = _score(model.head(model._mixed(blotted, many), many), target)
        for row, start in enumerate(some):
            falls[start : start + window] = whole - scores[row]
    return falls
