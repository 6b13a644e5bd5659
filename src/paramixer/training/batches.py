"""Which sequences form which batch, and how they become tensors. The order follows from (seed, epoch) alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

from paramixer.data.rng import permutation
from paramixer.data.samples import Item
from paramixer.data.task import Sequences, TaskInfo
from paramixer.nn.config import SequenceConfig

# Sequences of similar length are searched among so many batches.
_BUCKET_BATCHES = 50

Indices = NDArray[np.int64]


class Batch(NamedTuple):
    """Sequences as a model takes them."""

    inputs: Tensor
    """``[batch, length]`` or ``[batch, length, features]``, padded to the longest of the batch."""
    lengths: Tensor | None
    """``[batch]``, for a model that takes lengths."""
    targets: Tensor
    """``[batch]``."""
    weights: Tensor | None = None
    """``[batch]``, how much each sequence counts in training, 1 on average; None for all alike."""

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device; a copy from pinned memory goes on while the host continues."""
        inputs, targets = (tensor.to(device, non_blocking=True) for tensor in (self.inputs, self.targets))
        lengths, weights = (
            None if part is None else part.to(device, non_blocking=True) for part in (self.lengths, self.weights)
        )
        return Batch(inputs, lengths, targets, weights)


@dataclass(frozen=True)
class Collate:
    """Turns items into a batch."""

    pad: int
    """The token id that pads sequences; numbers are padded with zeros."""
    with_lengths: bool
    """Whether the model takes lengths."""

    def __call__(self, items: Sequence[Item]) -> Batch:
        """Return one batch."""
        sequences, targets = zip(*items, strict=True)
        lengths = torch.tensor([len(sequence) for sequence in sequences])
        tokens = sequences[0].dtype == torch.int64
        inputs = pad_sequence(list(sequences), batch_first=True, padding_value=self.pad if tokens else 0)
        return Batch(inputs, lengths if self.with_lengths else None, torch.stack(targets))


def build_collate(task: TaskInfo, config: SequenceConfig) -> Collate:
    """Return what turns items of a task into batches for a model."""
    pad = task.vocabulary.pad if task.vocabulary else None
    return Collate(pad or 0, config.padding == "length")


class Step(NamedTuple):
    """What one process trains on in one optimizer step."""

    parts: list[tuple[Batch, float]]
    """Batches, each with the weight of its loss."""
    tokens: int
    """Positions in the step, of all processes together."""


@dataclass(frozen=True, kw_only=True)
class TrainingBatches:
    """The optimizer steps of every epoch: this process's share of the training sequences, in an order of the seed."""

    sequences: Sequences
    """The training split."""
    collate: Collate
    """Turns items into batches."""
    batch: int
    """Batch size per process."""
    accumulate: int = 1
    """Batches per step."""
    seed: int = 0
    """Of the order."""
    bucket: bool | None = None
    """Whether batches hold sequences of similar length; None for where lengths vary."""
    workers: int = 0
    """Processes that load data."""
    rank: int = 0
    """This process."""
    processes: int = 1
    """All processes."""
    weights: NDArray[np.float64] | None = None
    """How much each sequence counts, as :func:`paramixer.training.weights.training_weights` gives it."""
    pinned: bool = False
    """Whether batches lie in pinned memory, from which a GPU copies by itself."""

    @property
    def per_step(self) -> int:
        """Sequences per optimizer step, of all processes together."""
        return self.batch * self.accumulate * self.processes

    @property
    def steps_per_epoch(self) -> int:
        """Optimizer steps per epoch."""
        return math.ceil(len(self.sequences) / self.per_step)

    def steps(self, epoch: int, start: int = 0) -> Iterator[Step]:
        """Yield the steps of an epoch from the given one on."""
        lengths = np.asarray(self.sequences.lengths)
        bucket = bool(len(np.unique(lengths[:10_000])) > 1) if self.bucket is None else self.bucket
        batches = order_epoch(lengths, self.per_step, self.seed, epoch, bucket)[start:]
        parts = [self._split(batch) for batch in batches]
        stream = load_batches(
            self.sequences, [indices for part in parts for indices, _ in part], self.collate, self.workers, self.pinned
        )
        for batch, part in zip(batches, parts, strict=True):
            yield Step([(self._weigh(next(stream), own), share) for own, share in part], int(lengths[batch].sum()))

    def _weigh(self, batch: Batch, indices: Indices) -> Batch:
        if self.weights is None:
            return batch
        return batch._replace(weights=torch.from_numpy(self.weights[indices].astype(np.float32)))

    def _split(self, batch: Indices) -> list[tuple[Indices, float]]:
        """Return this process's parts of a batch and the weights of their losses."""
        share = take_share(batch, self.rank, self.processes)
        if not len(share):
            # Every process takes part in a step; this one with a loss of weight zero.
            return [(batch[:1], 0.0)]
        parts = [part for part in np.array_split(share, self.accumulate) if len(part)]
        # The processes' gradients are averaged; with these weights the average is that of the whole batch.
        return [(part, len(part) * self.processes / len(batch)) for part in parts]


def order_epoch(lengths: Indices, batch: int, seed: int, epoch: int, bucket: bool) -> list[Indices]:
    """Return the batches of an epoch: every sequence once, in a new random order every epoch.

    With ``bucket``, sequences of similar length share a batch; the batches come in random order all the same.
    """
    order = permutation(len(lengths), seed * 1_000_003 + 2 * epoch + 1)
    if bucket:
        pool = batch * _BUCKET_BATCHES
        parts = [order[start : start + pool] for start in range(0, len(order), pool)]
        order = np.concatenate([part[np.argsort(lengths[part], kind="stable")] for part in parts])
    batches = [order[start : start + batch] for start in range(0, len(order), batch)]
    if bucket:
        batches = [batches[number] for number in permutation(len(batches), seed * 1_000_003 + 2 * epoch + 2)]
    return batches


def take_share(batch: Indices, rank: int, processes: int) -> Indices:
    """Return this process's share of a batch: no sequence twice, none left out."""
    return batch[rank::processes]


def load_batches(
    sequences: Sequences, batches: Sequence[Indices], collate: Collate, workers: int = 0, pinned: bool = False
) -> Iterator[Batch]:
    """Yield the batches of these indices, in this order."""
    return iter(
        DataLoader(
            sequences,  # type: ignore[arg-type]
            batch_sampler=[batch.tolist() for batch in batches],
            collate_fn=collate,
            num_workers=workers,
            pin_memory=pinned,
            # A generator of its own: the loader would draw a seed for its workers from the global one.
            generator=torch.Generator().manual_seed(0),
        )
    )
