"""A linear model of k-mer counts: the score that every model of DNA should be compared with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from paramixer.data.task import Sequences, Task
from paramixer.extras import needed_for

# The model learns from at most so many sequences.
_MOST_SEQUENCES = 20_000
# With 4^6 counts per sequence.
_LONGEST_WORD = 6


def score_kmers(task: Task, k: int = 3) -> float:
    """Return the test score, in the task's metric, of a linear model of k-mer counts.

    It learns from at most 20 000 sequences of the training split.

    Args:
        task: a genome task.
        k: letters per word, 1 to 6.
    """
    with needed_for("the k-mer baseline"):
        from sklearn.linear_model import LogisticRegression
        from sklearn.metrics import accuracy_score, roc_auc_score
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

    if not 1 <= k <= _LONGEST_WORD:
        raise ValueError(f"k={k}; choose 1 to {_LONGEST_WORD}")
    chosen = range(0, len(task.train), -(-len(task.train) // _MOST_SEQUENCES))
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    model.fit(_compute_shares(task.train, chosen, k), task.train.targets[chosen])
    shares, targets = _compute_shares(task.test, range(len(task.test)), k), task.test.targets
    if task.metric == "roc_auc":
        return float(roc_auc_score(targets, model.predict_proba(shares)[:, 1]))
    return float(accuracy_score(targets, model.predict(shares)))


def _compute_shares(sequences: Sequences, indices: range, k: int) -> NDArray[np.float32]:
    """Return the share of every k-mer in each sequence ``[sequences, 4^k]``; k-mers with an N are left out."""
    shares = np.zeros((len(indices), 4**k), np.float32)
    for row, index in enumerate(indices):
        ids = sequences[index].inputs.numpy()
        words = np.zeros(max(len(ids) - k + 1, 0), np.int64)
        known = np.ones(len(words), bool)
        for place in range(k):
            letters = ids[place : place + len(words)]
            words = 4 * words + letters - 1
            known &= letters > 0
        counts = np.bincount(words[known], minlength=4**k)
        shares[row] = counts / max(counts.sum(), 1)
    return shares
