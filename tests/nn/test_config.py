from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
import json
import pickle
import re

import numpy as np
import pytest

import paramixer as pm
from paramixer.baselines.config import BaselineConfig
from paramixer.nn.config import SequenceConfig
from paramixer.nn.init import InitOptions

TOKENS = {"length": 16, "outputs": 2, "vocabulary": 5}


@pytest.mark.parametrize(
    "owner", [SequenceConfig, pm.ParamixerConfig, BaselineConfig, InitOptions], ids=lambda owner: owner.__name__
)
def test_every_field_is_documented(owner):
    (definition,) = ast.parse(inspect.getsource(owner)).body
    documented = {
        field.target.id
        for field, text in zip(definition.body, definition.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }
    inherited = {field.name for base in owner.__bases__ if base is not object for field in dataclasses.fields(base)}
    assert documented >= {field.name for field in dataclasses.fields(owner)} - inherited


def test_a_config_is_a_frozen_flat_value():
    config = pm.ParamixerConfig(layer="paper", **TOKENS)
    assert config == pm.ParamixerConfig(layer="paper", **TOKENS)
    assert hash(config) == hash(pm.ParamixerConfig(layer="paper", **TOKENS))
    assert dataclasses.replace(config, hidden=7).hidden == 7
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.length = 3
    with pytest.raises(TypeError):
        pm.ParamixerConfig(16, 2)


def test_numpys_whole_numbers_become_pythons():
    config = pm.ParamixerConfig(layer="paper", **(TOKENS | {"length": np.int64(16)}))
    assert type(config.length) is int


def test_a_table_of_offsets_may_come_as_lists():
    config = pm.ParamixerConfig(layer="paper", **TOKENS, protocol="links", table=[[0, 1], [0, -4]])
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
        ({"pooling": "min"}, "pooling='min'; choose from flat, cls, mean, max, attention, templates, token"),
        ({"pooling": "mean+mean"}, "pooling='mean+mean' names one twice"),
        ({"pooling": "mean+token"}, "token answers at every position and goes with no other"),
        ({"heads": 2}, "heads=2 is not for layer='paper'"),
        ({"window": 4}, "window=4 is not for layer='paper'"),
        ({"layer": "prenorm", "link_input": "block"}, "link_input='block' is not for layer='prenorm'"),
        ({"layer": "prenorm", "channels": 30, "heads": 4}, "a head needs an equal share of at least 4 channels"),
        ({"layer": "prenorm", "vocabulary": None, "features": 1, "ngrams": 3}, "for token input"),
        ({"layer": "prenorm", "ngrams": 3, "ordered_ids": True}, "ids that are amounts have no n-grams"),
        ({"layer": "prenorm", "pooling": "token", "window": 2}, "windows have no answer for each position"),
        ({"layer": "prenorm", "base": 12}, "base=12 with links=9"),
        ({"layer": "prenorm", "base": 4, "protocol": "chord"}, "base=4 is for cdil"),
        ({"embedding_dropout": 1.0}, "embedding_dropout=1.0; it must be less than 1"),
        ({"block_dropout": -0.1}, "block_dropout=-0.1; it must be at least 0"),
        ({"pad": 5}, "pad=5 is no token id of a vocabulary of 5"),
        ({"vocabulary": None, "features": 2, "pad": 0}, "pad=0 is no token id"),
        ({"embedding_dropout": float("nan")}, "embedding_dropout=nan; it must be"),
        ({"embedding_dropout": "0.1"}, "embedding_dropout='0.1'; it must be a number"),
        ({"embedding_dropout": True}, "embedding_dropout=True; it must be a number"),
        ({"links": True}, "links=True; it must be a whole number"),
        ({"links": 0}, "links=0; a factor needs at least one link"),
        ({"protocol": "links", "table": [1, 2]}, "is no table of offsets"),
        ({"checkpoint_every": 0}, "checkpoint_every=0; it must be at least 1"),
        ({"chanels": 8}, "there is no setting 'chanels'; did you mean 'channels'?"),
        ({"mixer": "transformer"}, "there is no setting 'mixer'"),
    ],
)
def test_a_wrong_setting_is_named_where_it_is_made(changes, message):
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        pm.ParamixerConfig(**({"layer": "paper"} | TOKENS | changes))
    assert "\n" not in str(error.value)


def test_a_missing_setting_is_named():
    with pytest.raises(ValueError, match="^outputs is missing; give it a value$"):
        pm.ParamixerConfig(layer="paper", length=16, vocabulary=5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"embedding_bound": 0.0}, "embedding_bound=0.0; it must be greater than 0"),
        ({"embedding_bound": float("nan")}, "embedding_bound=nan; it must be a finite number"),
        ({"name": "zero"}, "init='zero'; choose from paper, identity"),
        ({"amounts": True}, "there is no setting 'amounts'"),
    ],
)
def test_wrong_options_of_an_initialization_are_named(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        InitOptions(**options)


def test_a_config_survives_copying_pickling_and_json():
    config = pm.ParamixerConfig(layer="paper", **TOKENS, protocol="links", table=[[0, 1], [0, -4]])
    assert copy.deepcopy(config) == pickle.loads(pickle.dumps(config)) == config
    assert pm.ParamixerConfig(**json.loads(json.dumps(dataclasses.asdict(config)))) == config
