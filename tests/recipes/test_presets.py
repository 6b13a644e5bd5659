"""The paper's table of hyperparameters, transcribed once more and compared with presets and recipes."""

from __future__ import annotations

import dataclasses

import pytest

import paramixer as pm
from paramixer.nn.config import PRENORM_ONLY
from paramixer.recipes.reader import PRESETS, read_recipe

# PAPER.md's tables, transcribed: task, N, protocol, K, lr, batch, vocabulary, E, H, positions, pooling, blocks, metric,
# classes or values, dropouts, pad, bound of the embedding, clipping, epochs.
# fmt: off
TABLE = [
    ("adding",        32768, "chord", 15, 1e-3, 40, None, 32, 32,  True,  "flat", 1, "error",    1,  0.0, 0.0, None, None, 1.0, 50),
    ("order",         16384, "chord", 14, 1e-3, 40, 6,    32, 32,  True,  "flat", 1, "error",    4,  0.0, 0.0, None, None, 1.0, 30),
    ("listops",       2000,  "chord", 12, 1e-3, 48, 16,   32, 32,  True,  "flat", 1, "accuracy", 10, 0.0, 0.0, 0,    None, None, 150),
    ("image",         1024,  "cdil",  3,  1e-3, 64, 256,  32, 32,  True,  "flat", 1, "accuracy", 10, 0.2, 0.8, None, None, None, 150),
    ("text",          4096,  "cdil",  9,  1e-4, 32, 97,   32, 128, False, "cls",  3, "accuracy", 2,  0.4, 0.0, 0,    0.1,  None, 200),
    ("pathfinder",    1024,  "chord", 11, 1e-3, 64, 256,  32, 32,  True,  "flat", 1, "accuracy", 2,  0.0, 0.0, None, None, None, 100),
    ("documents-16k", 16384, "chord", 15, 1e-4, 16, 4290, 100, 128, False, "cls", 1, "accuracy", 4,  0.2, 0.0, 0,    0.1,  1.0, 50),
    ("documents-32k", 32768, "chord", 16, 1e-4, 16, 4290, 100, 128, False, "cls", 1, "accuracy", 4,  0.2, 0.0, 0,    0.1,  1.0, 50),
    ("hfdna",         16384, "chord", 15, 1e-4, 16, 5,    32, 128, True,  "flat", 1, "roc_auc",  2,  0.2, 0.8, 0,    None, 1.0, 200),
    ("mtcdna",        16384, "chord", 15, 1e-4, 16, 5,    32, 128, True,  "flat", 2, "roc_auc",  2,  0.2, 0.8, 0,    None, 1.0, 200),
]
# fmt: on
# Fields that only the default network has; the config refuses any but their defaults in the paper's.
_NOT_THE_PAPERS = ("layer", "base", *PRENORM_ONLY)


@pytest.mark.parametrize("row", TABLE, ids=[row[0] for row in TABLE])
def test_presets_are_the_papers_table(row):
    name, length, protocol, links, _, _, vocabulary, channels, hidden, positions, pooling, blocks = row[:12]
    _, outputs, after_embedding, after_block, pad, *_ = row[12:]
    config = pm.preset(name)
    assert config.link_pattern().offsets(length).shape[1] == links
    assert config.layer == "paper"
    fields = {name: value for name, value in dataclasses.asdict(config).items() if name not in _NOT_THE_PAPERS}
    assert fields | {"links": None} == {
        "length": length,
        "outputs": outputs,
        "vocabulary": vocabulary,
        "features": 2 if name == "adding" else None,
        "channels": channels,
        "hidden": hidden,
        "blocks": blocks,
        "protocol": protocol,
        "links": None,
        "factors": None,
        "table": None,
        "residual": "factor",
        "ring": True,
        "link_input": "first",
        "positions": positions,
        "pooling": pooling,
        "target": "value" if name == "adding" else "class",
        "embedding_dropout": after_embedding,
        "block_dropout": after_block,
        "pad": pad,
        "padding": "symbol",
        "checkpoint_every": 1,
    }


@pytest.mark.parametrize("row", TABLE, ids=[row[0] for row in TABLE])
def test_the_papers_recipes_are_the_papers_table(row):
    name, rate, batch = row[0], row[4], row[5]
    bound, clip, epochs = row[17:]
    recipe = read_recipe("paper", name)
    assert recipe.init == {"name": "paper"} | ({} if bound is None else {"embedding_bound": bound})
    assert recipe.training == {
        "optimizer": "adam",
        "learning_rate": rate,
        "batch": batch,
        "epochs": epochs,
        "clip": clip or 0,
    }


def test_the_table_is_complete():
    assert [row[0] for row in TABLE] == list(PRESETS)


@pytest.mark.parametrize(
    ("name", "protocol", "length", "links"),
    [
        ("adding", None, 128, 7),
        ("order", None, 1024, 10),
        ("adding", "cdil", 128, 9),
        ("listops", "cdil", None, 9),
        ("listops", None, 1000, 11),
        ("image", "chord", None, 11),
        ("image", "cdil", 4096, 3),
        ("text", "chord", None, 13),
        ("pathfinder", "cdil", None, 9),
        ("hfdna", None, 2**20, 21),
    ],
)
def test_links_follow_protocol_and_length(name, protocol, length, links):
    config = pm.preset(name, protocol, length)
    assert config.link_pattern().offsets(config.length).shape[1] == links
    assert config.protocol == (protocol or pm.preset(name).protocol)
    assert config.length == (length or pm.preset(name).length)


def test_an_unknown_preset_suggests_the_nearest():
    with pytest.raises(ValueError, match="no preset 'listop', did you mean 'listops'"):
        pm.preset("listop")
    with pytest.raises(ValueError, match="choose from adding, order"):
        pm.preset("xyz")
    with pytest.raises(ValueError, match="no preset None"):
        pm.preset(None)
    with pytest.raises(ValueError, match="length is '5', not a whole number"):
        pm.preset("listops", length="5")
    with pytest.raises(ValueError, match="protocol='ring'"):
        pm.preset("listops", "ring")
