"""Which sequences form which batch, and how they become tensors. The order follows from (seed, epoch) alone."""

from __future__ import annotations

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
from paramixer.data.storage.arrow import Item
from paramixer.data.task import Sequences, TaskInfo
from paramixer.nn.config import ParamixerConfig

# Sequences of similar length are looked for among so many batches.
_BUCKET_BATCHES = 50


class Batch(NamedTuple):
    """Sequences as a model takes them."""

    inputs: Tensor
    """``[batch, length]`` or ``[batch, length, features]``, padded to the longest of the batch."""
    lengths: Tensor | None
    """``[batch]``, where the model is to know them."""
    targets: Tensor
    """``[batch]``."""


@dataclass(frozen=True)
class Collate:
    """Turns items into a batch."""

    pad: int
    """What fills up token ids; numbers are filled up with zeros."""
    with_lengths: bool
    """Whether the model takes lengths."""

    def __call__(self, items: Sequence[Item]) -> Batch:
        """One batch."""
        sequences, targets = zip(*items, strict=True)
        lengths = torch.tensor([len(sequence) for sequence in sequences])
        tokens = sequences[0].dtype == torch.int64
        inputs = pad_sequence(list(sequences), batch_first=True, padding_value=self.pad if tokens else 0)
        return Batch(inputs, lengths if self.with_lengths else None, torch.stack(targets))


def collate_for(info: TaskInfo, config: ParamixerConfig) -> Collate:
    """How sequences of a task become a batch for a model."""
    pad = info.vocabulary.pad if info.vocabulary else None
    return Collate(pad or 0, config.padding == "length")


def epoch_order(lengths: NDArray[np.int64], batch: int, seed: int, epoch: int, bucket: bool) -> list[NDArray[np.int64]]:
    """The batches of one epoch: every sequence once, in a new random order every epoch.

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


def mine(batch: NDArray[np.int64], rank: int, processes: int) -> NDArray[np.int64]:
    """This process's share of a batch: no sequence twice, none left out."""
    return batch[rank::processes]


def loaded(
    sequences: Sequences, batches: Sequence[NDArray[np.int64]], collate: Collate, workers: int = 0
) -> Iterator[Batch]:
    """The batches of these indices, in this order."""
    plain = [batch.tolist() for batch in batches]
    # A generator of its own: the loader would draw a seed for its workers from the global one.
    return iter(
        DataLoader(
            sequences,  # type: ignore[arg-type]
            batch_sampler=plain,
            collate_fn=collate,
            num_workers=workers,
            generator=torch.Generator().manual_seed(0),
        )
    )
