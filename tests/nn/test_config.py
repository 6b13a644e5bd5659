from __future__ import annotations

import ast
import dataclasses
import inspect

import numpy as np
import pytest

import paramixer as pm
from paramixer.nn import config as config_module
from paramixer.recipes import presets

TOKENS = {"length": 16, "outputs": 2, "vocabulary": 5}


@pytest.mark.parametrize("owner", [pm.ParamixerConfig, pm.Recipe], ids=lambda owner: owner.__name__)
def test_every_field_is_documented(owner):
    (definition,) = ast.parse(inspect.getsource(owner)).body
    documented = {
        field.target.id
        for field, text in zip(definition.body, definition.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }
    assert documented == {field.name for field in dataclasses.fields(owner)}


def test_a_config_is_a_frozen_flat_value():
    config = pm.ParamixerConfig(**TOKENS)
    assert config == pm.ParamixerConfig(**TOKENS)
    assert hash(config) == hash(pm.ParamixerConfig(**TOKENS))
    assert dataclasses.replace(config, hidden=7).hidden == 7
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.length = 3
    with pytest.raises(TypeError):
        pm.ParamixerConfig(16, 2)


def test_numpys_whole_numbers_become_pythons():
    config = pm.ParamixerConfig(**(TOKENS | {"length": np.int64(16)}))
    assert type(config.length) is int


def test_a_table_of_offsets_may_come_as_lists():
    config = pm.ParamixerConfig(**TOKENS, protocol="links", table=[[0, 1], [0, -4]])
    assert config.table == ((0, 1), (0, -4))
    assert config.link_pattern() == pm.Links([[0, 1], [0, -4]])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"length": 1}, "length 1 leaves nothing to link"),
        ({"length": 0}, "length=0; it must be at least 1"),
        ({"length": "16"}, "length='16'; it must be a whole number"),
        ({"hidden": 32.0}, "hidden=32.0; it must be a whole number"),
        ({"blocks": True}, "blocks=True; it must be a whole number"),
        ({"ring": 1}, "ring=1; it must be true or false"),
        ({"outputs": 0}, "outputs=0"),
        ({"vocabulary": None}, "give a vocabulary for token input or features"),
        ({"features": 2}, "not both"),
        ({"protocol": "cord"}, "protocol='cord'; it must be one of chord, cdil, links"),
        ({"protocol": "links"}, "protocol 'links' and a table go together"),
        ({"table": [[0]]}, "protocol 'links' and a table go together"),
        ({"protocol": "links", "table": [[0]], "links": 3}, "follow from the table; leave them None"),
        ({"protocol": "cdil", "links": 4}, "links=4 is even"),
        ({"residual": "all"}, "one of factor, block, none"),
        ({"pooling": "max"}, "one of flat, cls, mean, token"),
        ({"embedding_dropout": 1.0}, "embedding_dropout=1.0; a probability"),
        ({"block_dropout": -0.1}, "block_dropout=-0.1; a probability"),
        ({"pad": 5}, "pad=5 is no token id of a vocabulary of 5"),
        ({"vocabulary": None, "features": 2, "pad": 0}, "pad=0 is no token id"),
        ({"embedding_bound": 0.0}, "embedding_bound=0.0; it must be positive"),
        ({"embedding_bound": float("nan")}, "positive and finite"),
        ({"protocol": "links", "table": [1, 2]}, "is no table of offsets"),
        ({"vocabulary": None, "features": 2, "amounts": True}, "amounts=True is for token ids"),
        ({"keep": 0}, "keep=0; it must be at least 1"),
    ],
)
def test_a_wrong_setting_is_named_where_it_is_made(changes, message):
    with pytest.raises(ValueError, match=message):
        pm.ParamixerConfig(**(TOKENS | changes))


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


@pytest.mark.parametrize("row", TABLE, ids=[row[0] for row in TABLE])
def test_presets_are_the_papers_table(row):
    name, length, protocol, links, rate, batch, vocabulary, channels, hidden, positions, pooling, blocks = row[:12]
    metric, outputs, after_embedding, after_block, pad, bound, clip, epochs = row[12:]
    assert dataclasses.asdict(pm.preset(name)) == {
        "length": length,
        "outputs": outputs,
        "vocabulary": vocabulary,
        "features": 2 if name == "adding" else None,
        "channels": channels,
        "hidden": hidden,
        "blocks": blocks,
        "mixer": "paramixer",
        "heads": 1,
        "rank": None,
        "window": None,
        "protocol": protocol,
        "links": links,
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
        "init": "paper",
        "embedding_bound": bound,
        "amounts": False,
        "keep": 1,
    }
    assert dataclasses.asdict(pm.recipe(name)) == {
        "learning_rate": rate,
        "batch": batch,
        "epochs": epochs,
        "clip": clip,
        "metric": metric,
    }


def test_the_table_is_complete():
    assert [row[0] for row in TABLE] == list(presets._MODELS) == list(presets._RECIPES)


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
    assert config.links == links
    assert config.protocol == (protocol or pm.preset(name).protocol)
    assert config.length == (length or pm.preset(name).length)


@pytest.mark.parametrize(
    "name", ["adding", "order", "listops", "pathfinder", "image", "text", "documents-32k", "hfdna", "mtcdna"]
)
def test_quick_recipes_are_settings_that_exist(name):
    found = presets.quick(name, 2048)
    assert pm.TrainingOptions(**found.training).learning_rate
    assert dataclasses.replace(pm.preset(name, length=2048), **found.model).init in (
        "identity",
        "local",
        "even",
        "pairs",
    )
    assert presets.quick("hfdna", 16384).training["head_rate"] < presets.quick("hfdna", 256).training["head_rate"] < 1
    with pytest.raises(ValueError, match="did you mean 'hfdna'"):
        presets.quick("hfdn", 64)


def test_an_unknown_preset_suggests_the_nearest():
    with pytest.raises(ValueError, match="no preset 'listop', did you mean 'listops'"):
        pm.preset("listop")
    with pytest.raises(ValueError, match="choose from adding, order"):
        pm.recipe("xyz")
    with pytest.raises(ValueError, match="no preset None"):
        pm.preset(None)
    with pytest.raises(ValueError, match="length is '5', not a whole number"):
        pm.preset("listops", length="5")
    with pytest.raises(ValueError, match="protocol='ring'"):
        pm.preset("listops", "ring")


def test_type_descriptions_cover_every_annotation():
    for field, hint in inspect.get_annotations(pm.ParamixerConfig, eval_str=True).items():
        assert config_module._describe(hint), field
