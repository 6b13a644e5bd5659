"""Which samples an estimator learns from, in which order, how much each counts, and which are held out.

Nothing here depends on the order in which samples are given, and a whole-number weight is as good as so many copies.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paramixer.data.rng import permutation

# With fewer samples none is held out: the model is chosen on what it learned from.
_LEAST_HELD_OUT = 20
# Copies per sample on average, beyond which whole-number weights weigh the loss instead.
_MOST_COPIES = 10

# Copies of a held-out sample of mean weight.
_HELD_OUT_COPIES = 4

Indices = NDArray[np.int64]


class Selection(NamedTuple):
    """Samples to learn from."""

    indices: Indices
    """The samples in order; one with a whole-number weight as often as that says."""
    weights: NDArray[np.float64] | None
    """How much each counts; None for all alike."""


def select_samples(samples: Sequence[Any], targets: NDArray[Any], weights: NDArray[np.float64] | None) -> Selection:
    """Return which samples are learned from: those of weight 0 are not.

    Args:
        samples: texts or arrays.
        targets: one each.
        weights: one each, not negative and not all 0; None for all alike.
    """
    keys = [(digest(sample), str(target)) for sample, target in zip(samples, targets, strict=True)]
    given = np.ones(len(keys)) if weights is None else weights
    order = sorted(
        (index for index in range(len(keys)) if given[index]), key=lambda index: (*keys[index], given[index])
    )
    indices = np.array(order, np.int64)
    chosen = given[indices]
    if (chosen == np.round(chosen)).all() and chosen.sum() <= _MOST_COPIES * len(chosen):
        return Selection(np.repeat(indices, chosen.astype(np.int64)), None)
    return Selection(indices, chosen)


def hold_out(
    samples: Sequence[Any], share: float, seed: int, classes: Sequence[int] | None = None
) -> tuple[Indices, Indices]:
    """Return the places of samples to train on, and of those to choose the best model by.

    Equal samples are on one side, as far as their numbers allow. If every class has at least two samples, the same
    share of each is held out.

    Args:
        samples: texts or arrays, in the order of a selection.
        share: of the samples that are held out.
        seed: of the choice.
        classes: of the samples; None to hold out whatever they are.
    """
    count = len(samples)
    everything = np.arange(count, dtype=np.int64)
    wanted = round(count * share)
    if count < _LEAST_HELD_OUT or not wanted:
        return everything, everything
    digests = [digest(sample) for sample in samples]
    copies = Counter(digests)
    distinct = sorted(copies)
    class_of = dict.fromkeys(distinct, 0)
    if classes is not None and min(Counter(classes).values()) > 1:
        # Of equal samples of several classes the least counts, in whatever order they come.
        class_of = dict(sorted(zip(digests, classes, strict=True), reverse=True))
    left = _share_out(Counter(class_of[name] for name in digests), wanted)
    # One of every class stays to be learned from.
    stay = Counter(class_of.values())
    chosen: set[bytes] = set()
    for number in permutation(len(distinct), seed):
        name = distinct[number]
        label = class_of[name]
        if copies[name] <= left[label] and stay[label] > 1:
            chosen.add(name)
            left[label] -= copies[name]
            stay[label] -= 1
    is_out = np.array([name in chosen for name in digests])
    if not chosen:
        is_out[permutation(count, seed)[:wanted]] = True
    return everything[~is_out], everything[is_out]


def _share_out(counts: Counter[int], wanted: int) -> dict[int, int]:
    """Return how many samples of every class are held out, of so many in all."""
    quotas = {label: count * wanted / counts.total() for label, count in counts.items()}
    shares = {label: int(quota) for label, quota in quotas.items()}
    # What rounding down left over goes to the classes that it cut most.
    by_loss = sorted(counts, key=lambda label: (shares[label] - quotas[label], label))
    for label in by_loss[: wanted - sum(shares.values())]:
        shares[label] += 1
    return shares


def weigh_by_copies(indices: Indices, weights: NDArray[np.float64] | None) -> Indices:
    """Return held-out samples as often as their weights say, because a metric weighs nothing.

    Args:
        indices: of the samples.
        weights: one for each sample of the selection; None for all alike.
    """
    if weights is None or not weights[indices].any():
        return indices
    chosen = weights[indices]
    return np.repeat(indices, np.round(_HELD_OUT_COPIES * chosen / chosen.mean()).astype(np.int64))


def digest(sample: Any) -> bytes:
    """Return what is equal for equal texts and arrays only."""
    if isinstance(sample, str):
        content = sample.encode("utf-8", "surrogatepass")
    else:
        content = f"{sample.dtype} {sample.shape} ".encode() + sample.tobytes()
    return hashlib.blake2b(content, digest_size=16).digest()
