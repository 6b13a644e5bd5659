"""The size of the default network and its batches, from the number and the length of the training sequences.

The rule knows nothing else about a task. Everything it chooses can be overruled.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from paramixer.data.task import Task, TaskInfo
from paramixer.data.vocabulary import Vocabulary
from paramixer.nn.config import ParamixerConfig
from paramixer.training.memory import activation_bytes
from paramixer.training.options import TrainingOptions

# Layers mix at most so many positions; longer sequences get wider windows. Short ones get none.
_MIXED, _SHORTEST_WINDOWED, _LEAST_WINDOW = 512, 256, 4
# With fewer training sequences the network is narrower, with more it is deeper.
_FEW, _MANY = 1_000, 20_000
# Sequences and positions of a step at most, and steps of an epoch at least.
_BATCH, _POSITIONS, _STEPS = 32, 2**17, 20
# Epochs where no budget is given: so many, or as many as make so many steps, but never more than the last number.
_EPOCHS, _LEAST_STEPS, _MOST_EPOCHS = 10, 400, 60
# Texts and DNA have vectors for n-grams up to this length, or up to a longer one where a table has a row for each, and
# texts also of words. Tables have at most so many rows per sequence.
_NGRAMS, _LONGEST, _WORDS, _ROWS, _LEAST_ROWS, _MOST_ROWS = 6, 8, 2, 32, 2**12, 2**18


class Size(NamedTuple):
    """What follows from the data."""

    model: dict[str, Any]
    """Fields of :class:`paramixer.ParamixerConfig`."""
    training: dict[str, Any]
    """Fields of :class:`paramixer.TrainingOptions`."""


def choose_size(task: Task) -> Size:
    """Return window, width, layers and kind of stem of the default network, batch size and epochs for a task."""
    sequences = len(task.train)
    few = sequences < _FEW
    model = {
        "window": choose_window(task.length),
        "channels": 32 if few else 64,
        "blocks": 1 if few else 2 if sequences < _MANY else 3,
        **choose_stem(task, sequences),
    }
    mean = float(np.mean(task.train.lengths)) if sequences else 1.0
    batch = min(_BATCH, max(1, int(_POSITIONS / max(mean, 1.0))), max(4, sequences // _STEPS))
    steps = -(-max(sequences, 1) // batch)
    epochs = min(_MOST_EPOCHS, max(_EPOCHS, -(-_LEAST_STEPS // steps)))
    return Size(model, {"batch": batch, "epochs": epochs})


def choose_window(length: int) -> int:
    """Return how many positions become one: a power of two, 1 for short sequences."""
    if length < _SHORTEST_WINDOWED:
        return 1
    window = _LEAST_WINDOW
    while window * _MIXED < length:
        window *= 2
    return window


def choose_stem(task: TaskInfo, sequences: int) -> dict[str, Any]:
    """Return how the stem reads tokens: n-grams of characters and bases, numbers in order, or symbols alone."""
    unit = None if task.vocabulary is None else task.vocabulary.unit
    if task.vocabulary is not None and unit == "character":
        # The next lower power of two: for 2 100 reviews 2^16, where more were no better and the file larger.
        rows = min(_MOST_ROWS, max(_LEAST_ROWS, 1 << ((_ROWS * max(sequences, 1)).bit_length() - 1)))
        tables = {"ngrams": choose_ngrams(task.vocabulary, rows), "ngram_rows": rows}
        letters = task.vocabulary.letters
        return tables if letters is None else {**tables, "words": _WORDS, "letters": letters}
    return {"ordered_ids": True} if unit == "number" else {}


def choose_ngrams(vocabulary: Vocabulary, rows: int) -> int:
    """Return the longest n-grams: a base says less than a letter does, so that more of them are needed."""
    known = {*vocabulary.symbols} - {vocabulary.pad_symbol, vocabulary.unknown_symbol}
    return max([_NGRAMS, *(n for n in range(_NGRAMS, _LONGEST + 1) if len(known) ** n <= rows)])


def describe_size(task: Task, config: ParamixerConfig, options: TrainingOptions) -> str:
    """Return lines about length, size and memory that a run has, and the settings that change them."""
    window = f", windows of {config.window} positions" if config.window > 1 else ""
    layers = "1 layer" if config.blocks == 1 else f"{config.blocks} layers"
    assert options.batch is not None
    lengths = np.asarray(task.train.full_lengths)
    shares = "/".join(f"{round(float(length)):,}" for length in np.quantile(lengths, (0.5, 0.9, 1.0)))
    megabytes = activation_bytes(config, min(options.batch, len(task.train))) / 1e6
    memory = f"{megabytes:,.0f} MB" if megabytes < 1000 else f"{megabytes / 1000:,.1f} GB"
    # Of a user's file, the length was described with what else was inferred.
    length = (
        ""
        if task.inferred
        else f"length: {task.length:,}, where half, nine tenths and all of the training sequences have up to {shares} "
        "(change with --length)\n"
    )
    return (
        f"{length}network: {layers} of {config.channels} channels{window}; batch {options.batch} "
        f"({len(task.train):,} sequences), about {memory} for a step (change with --batch, --set "
        "model.blocks, model.channels, model.window)"
    )


def describe_budget(task: Task, options: TrainingOptions, seconds: float) -> str:
    """Return one line about how long a run takes, and the settings that change it.

    Args:
        task: the data.
        options: complete training options.
        seconds: that a step takes.
    """
    assert options.batch is not None
    epoch = -(-len(task.train) // (options.batch * options.accumulate))
    limits = [limit for limit in (options.steps, options.epochs and options.epochs * epoch) if limit]
    parts = []
    if limits:
        parts.append(
            f"{min(limits):,} steps of {_describe_seconds(seconds)} ({_describe_number(min(limits) / epoch)} epochs)"
        )
    if options.minutes is not None:
        steps = 60 * options.minutes / max(seconds, 1e-6)
        parts.append(
            f"{options.minutes:g} minutes, up to {steps:,.0f} steps of {_describe_seconds(seconds)} "
            f"({_describe_number(steps / epoch)} epochs)"
        )
    else:
        parts[-1] += f", about {_describe_seconds(seconds * min(limits))}"
    early = f"; ends early after {options.patience} evaluations without improvement" if options.patience else ""
    return f"budget: {' or '.join(parts)}{early} (change with --minutes, --epochs" + (
        ", --set training.patience=0)" if options.patience else ")"
    )


def _describe_seconds(seconds: float) -> str:
    if seconds < 90:
        return f"{_describe_number(seconds)} s"
    minutes, hours = _describe_number(seconds / 60), _describe_number(seconds / 3600)
    return f"{minutes} minutes" if seconds < 5400 else f"{hours} hours"


def _describe_number(number: float) -> str:
    """Return a number with two digits, or all of those before the point."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"
