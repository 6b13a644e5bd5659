"""One resolver turns a task, a recipe and what the user gave into complete, valid settings."""

from __future__ import annotations

import dataclasses

import pytest
import torch
import yaml

import paramixer as pm
from paramixer.recipes import read_recipe
from paramixer.training import memory
from paramixer.training.options import TrainingOptions
from paramixer.training.recipe import resolve, resolve_training
from training import tiny


def order(preset: str = "order", sequences: int = 30, **changes: object) -> pm.data.Task:
    """Temporal Order that claims to be like another row of the paper's table."""
    return dataclasses.replace(tiny.task(train=sequences), preset=preset, **changes)


def test_a_resolved_value_is_complete_and_printable_and_resolves_to_itself():
    task = order()
    resolved = resolve(task, model={"channels": 8}, training={"minutes": 3})
    document = yaml.safe_load(yaml.safe_dump(resolved.document()))
    assert document["recipe"] == "default"
    assert document["model"]["channels"] == 8
    assert "length" not in document["model"], "the data decides it"
    assert document["training"]["minutes"] == 3
    again = resolve(task, **{name: document[name] for name in ("recipe", "system", "model", "init", "training")})
    assert again == resolved


def test_every_task_takes_the_default_network_unless_the_paper_is_named():
    paper = resolve(order(), recipe="paper")
    assert (paper.recipe, paper.init.name, paper.training.schedule) == ("paper", "paper", "constant")
    own = resolve(order(variable_length=True))
    assert (own.init.name, own.training.schedule, own.config.padding) == ("prenorm", "cosine", "length")


@pytest.mark.parametrize(
    ("training", "field", "value"),
    [
        ({"learning_rate": 0.5}, "learning_rate", 0.5),
        ({"schedule": "constant"}, "schedule", "constant"),
        ({"clip": 0.0}, "clip", 0.0),
    ],
)
def test_what_the_user_gives_overrules_the_recipe(training, field, value):
    task = order("hfdna")
    assert getattr(resolve(task, training=training).training, field) == value
    assert getattr(resolve(task).training, field) != value


def test_a_given_end_replaces_the_recipes():
    task = order("text")
    assert resolve(task, recipe="paper").training.epochs == 200
    for end in ({"minutes": 3.0}, {"steps": 7}, {"epochs": 2}):
        options = resolve(task, recipe="paper", training=end).training
        assert {
            name: getattr(options, name) for name in ("minutes", "steps", "epochs") if getattr(options, name)
        } == end


def test_options_of_a_run_are_taken_as_they_are():
    complete = resolve(order("text")).training
    assert resolve_training(order("text"), read_recipe("paper", "text"), complete) == complete


def test_baselines_take_the_papers_recipe_and_settings_of_their_own():
    task = order("text")
    resolved = resolve(task, system="transformer", model={"channels": 8})
    assert (resolved.recipe, resolved.system, resolved.training.schedule) == ("paper", "transformer", "constant")
    assert (resolved.config.blocks, resolved.config.hidden, resolved.config.channels) == (1, 8, 8)
    assert resolved.config.pooling == "cls"
    again = resolve(task, **{k: v for k, v in resolved.document().items() if k != "recipe"}, recipe="paper")
    assert again == resolved


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"model": {"length": 99}}, "model.length=99; the data decides it"),
        ({"model": {"pooling": "token"}}, "pooling='token' predicts at every position"),
        ({"model": {"chanels": 3}}, "there is no setting 'chanels'; did you mean 'channels'?"),
        ({"training": {"batch": 0}}, "batch=0; it must be at least 1"),
        ({"init": {"name": "zero"}}, "zero"),
        ({"recipe": "papre"}, "there is no recipe 'papre'; did you mean 'paper'?"),
        ({"recipe": "quick"}, "there is no recipe 'quick'; choose from default, paper. A file"),
        ({"recipe": "nowhere.yaml"}, "nowhere.yaml: there is no such file"),
        ({"system": "transfomer"}, "did you mean 'transformer'?"),
        ({"system": "transformer", "model": {"protocol": "cdil"}}, "transformer has no setting model.protocol"),
        ({"system": "transformer", "init": {"name": "identity"}}, "init.name='identity' is for paramixer"),
        ({"match_parameters": True}, "match_parameters sizes a baseline"),
    ],
    ids=str,
)
def test_bad_settings_are_named(given, message):
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        resolve(order(), **given)


def test_a_recipe_of_ones_own_starts_from_another(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("base: default\nmodel: {hidden: 7}\ntraining: {batch: 3}\n")
    resolved = resolve(order(), recipe=str(path))
    assert (resolved.config.hidden, resolved.training.batch, resolved.training.learning_rate) == (7, 3, 3e-3)
    path.write_text("model: {hidden: 7}\n")
    with pytest.raises(ValueError, match="give learning_rate"):
        resolve(order(), recipe=str(path))
    path.write_text("models: {hidden: 7}\n")
    with pytest.raises(ValueError, match="unknown section 'models'"):
        resolve(order(), recipe=str(path))
    for text, message in (
        (f"base: {path}", "is its own base"),
        ("base: 3", "base is 3; it must be the name"),
        ("model: {1: 2}", "must be a mapping of names to values"),
        ("base: default\nmodel: {length: 8}", "the data decides model.length"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            resolve(order(), recipe=str(path))
    (tmp_path / "other.yaml").write_text("base: mine.yaml\ntraining: {learning_rate: 1e-3}\n")
    path.write_text("base: default\nmodel: {padding: symbol}\n")
    beside = resolve(order(variable_length=True), recipe=str(tmp_path / "other.yaml"))
    assert (beside.training.learning_rate, beside.config.padding) == (1e-3, "symbol")
    path.write_text("base: [default")
    with pytest.raises(ValueError, match="is no YAML"):
        resolve(order(), recipe=str(path))


def test_a_model_that_does_not_fit_into_memory_is_refused_before_it_is_built(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 10**9)
    with pytest.raises(ValueError, match=r"hidden=1000000, channels=1000: .* has .* numbers.* GB free"):
        resolve(order(), recipe="paper", model={"hidden": 10**6, "channels": 1000})
    with pytest.raises(ValueError, match=r"pooling='flat', length=12, channels=32000000"):
        resolve(order(), recipe="paper", model={"channels": 32 * 10**6, "hidden": 1, "positions": False, "factors": 1})
    with pytest.raises(ValueError, match=r"channels=200000.* numbers.* GB free"):
        resolve(order(), system="transformer", model={"channels": 200_000})
    monkeypatch.setattr(memory, "available_memory", lambda: 10**7)
    with pytest.raises(ValueError, match=r"batch=30, length=12: the first step would take .*lower the batch"):
        resolve(order(), recipe="paper", model={"channels": 2000, "hidden": 1, "positions": False, "factors": 1})


def test_a_step_on_a_gpu_needs_the_memory_of_the_gpu(monkeypatch):
    model = {"channels": 2000, "hidden": 1, "positions": False, "factors": 1}
    monkeypatch.setattr(memory, "training_device", lambda: "cuda")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (10**7, 10**11))
    with pytest.raises(ValueError, match=r"the first step would take .*; the GPU has 0.0 GB free; lower the batch"):
        resolve(order(), recipe="paper", model=model)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (10**11, 10**11))
    assert resolve(order(), recipe="paper", model=model).config.channels == 2000


def test_a_batch_larger_than_the_data_is_as_large_as_the_data():
    assert resolve(order(), training={"batch": 10**9}).training.batch == 10**9


def test_every_recipe_of_the_package_resolves():
    for preset in pm.recipes.PRESETS:
        for recipe in pm.recipes.recipe_names():
            options = resolve_training(order(preset), pm.recipes.read_recipe(recipe, preset))
            assert isinstance(options, TrainingOptions)
