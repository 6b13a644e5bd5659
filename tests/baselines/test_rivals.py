"""What every rival must do, whichever package it comes from."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

import paramixer as pm
from paramixer.baselines import registry

BASELINES = [name for name, found in registry.BASELINES.items() if not found.linear]
# Their hashes or sorts, drawn anew in every pass, may miss.
RANDOM = ("reformer", "sinkhorn")


def config(name: str, **fields: object) -> pm.ParamixerConfig:
    settings = {"length": 50, "vocabulary": 9, "outputs": 3, "channels": 8, "hidden": 12, "padding": "length"}
    return pm.ParamixerConfig(**settings | {"mixer": name, "pooling": "mean"} | fields)


def network(name: str, **fields: object) -> pm.Paramixer:
    return pm.Paramixer(config(name, **fields), generator=torch.Generator().manual_seed(1)).eval()


def layers(name: str, length: int, **fields: object) -> list[torch.nn.Module]:
    found = registry.layers(config(name, length=length, **fields), torch.Generator().manual_seed(1))
    return [layer.eval() for layer in found]


def run(model: torch.nn.Module, *inputs: torch.Tensor) -> torch.Tensor:
    torch.manual_seed(0)
    return model(*inputs)


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("length", [1, 2, 17, 50])
def test_values_keep_their_shape_at_any_length(name, length):
    (layer,) = layers(name, 50)
    values = torch.randn(3, length, 8)
    mixed = layer(values, None, None)
    assert mixed.shape == values.shape
    assert mixed.isfinite().all()


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("length", [2, 3, 5])
def test_models_for_very_short_sequences_work(name, length):
    (layer,) = layers(name, length)
    assert layer(torch.randn(2, length, 8)).isfinite().all()


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("heads", [1, 2])
def test_every_parameter_learns(name, heads):
    heads = heads if registry.baseline(name).heads else 1
    model = network(name, heads=heads, blocks=2, pooling="token").train()
    run(model, torch.randint(9, (3, 41), generator=torch.Generator().manual_seed(0))).square().sum().backward()
    for which, parameter in model.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, which
            assert parameter.grad.isfinite().all(), which
            assert parameter.grad.abs().sum() > 0, which


@pytest.mark.parametrize("name", BASELINES)
def test_position_0_sees_the_last_token(name):
    found = []
    for seed in range(20 if name in RANDOM else 3):
        (layer,) = layers(name, 50)
        layer.train(name in RANDOM)
        values = torch.randn(1, 47, 8, generator=torch.Generator().manual_seed(seed), requires_grad=True)
        torch.manual_seed(seed)
        (gradient,) = torch.autograd.grad(layer(values)[0, 0].square().sum(), values)
        found.append(float(gradient[0, -1].abs().sum()))
    assert max(found) > 1e-6
    if name not in RANDOM:
        assert min(found) > 0


@pytest.mark.parametrize("name", BASELINES)
def test_padding_leaks_in_no_way(name):
    model = network(name)
    draw = torch.Generator().manual_seed(3)
    tokens, lengths = torch.randint(9, (3, 44), generator=draw), torch.tensor([44, 13, 30])
    with torch.no_grad():
        whole = run(model, tokens, lengths)
        other = tokens.clone()
        for row, length in enumerate(lengths):
            other[row, length:] = 8 - other[row, length:]
        # What lies past the end does not count, ...
        torch.testing.assert_close(run(model, other, lengths), whole, rtol=0, atol=0)
        if name == "nystromformer":
            # Its pseudo-inverse starts from the largest entry of the whole batch.
            return
        # ... nor how much of it there is, nor with whom a sequence shares a batch.
        for row, length in enumerate(lengths):
            alone = run(model, tokens[row : row + 1, :length], lengths[row : row + 1])
            torch.testing.assert_close(alone[0], whole[row], rtol=0, atol=2e-6)


@pytest.mark.parametrize("name", BASELINES)
def test_padding_may_be_nan(name):
    (layer,) = layers(name, 20)
    values, lengths = torch.randn(2, 20, 8), torch.tensor([20, 7])
    values[1, 7:] = torch.nan
    values.requires_grad_()
    mixed = layer(values, None, lengths)
    assert mixed[:1].isfinite().all()
    assert (mixed[1, 7:] == 0).all()
    (gradient,) = torch.autograd.grad(mixed.square().sum(), values)
    assert (gradient[1, 7:] == 0).all()
    assert gradient.isfinite().all()


@pytest.mark.parametrize("name", BASELINES)
def test_saved_and_loaded_it_answers_the_same(name, tmp_path):
    model = network(name, heads=2 if registry.baseline(name).heads else 1)
    tokens = torch.randint(9, (2, 33))
    model.save_pretrained(tmp_path)
    before = torch.get_rng_state()
    loaded = pm.Paramixer.from_pretrained(tmp_path)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(run(loaded, tokens), run(model, tokens))


@pytest.mark.parametrize("name", BASELINES)
def test_a_seed_decides_its_start(name):
    global_state = torch.get_rng_state()
    first, again, other = (
        pm.Paramixer(config(name), generator=torch.Generator().manual_seed(seed)).state_dict() for seed in (1, 1, 2)
    )
    assert torch.equal(torch.get_rng_state(), global_state)
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert any(not torch.equal(first[key], other[key]) for key in first if key.startswith("blocks"))


@pytest.mark.parametrize("name", BASELINES)
def test_bf16_autocast_stays_near(name):
    model = network(name)
    tokens = torch.randint(9, (2, 50), generator=torch.Generator().manual_seed(0))
    plain = run(model, tokens)
    with torch.autocast("cpu", torch.bfloat16):
        half = run(model, tokens)
    # A hash may fall otherwise.
    assert float((half.float() - plain).detach().abs().max()) < (0.2 if name in RANDOM else 0.05)
    with torch.autocast("cpu", torch.bfloat16):
        run(model.train(), tokens).float().square().sum().backward()


@pytest.mark.parametrize("name", BASELINES)
def test_longer_than_the_model_is_refused(name):
    with pytest.raises(ValueError, match=r"length 51 exceeds the model's 50"):
        network(name)(torch.zeros(1, 51, dtype=torch.int64))


def test_importing_and_running_them_prints_nothing():
    code = """
import torch
from paramixer.baselines import registry
from paramixer.nn.config import ParamixerConfig
for name, found in registry.BASELINES.items():
    if not found.linear:
        config = ParamixerConfig(length=16, vocabulary=9, outputs=3, channels=8, mixer=name)
        registry.layers(config)[0](torch.randn(1, 16, 8))
"""
    done = subprocess.run([sys.executable, "-W", "default", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    # What torch says of itself is not ours.
    assert [line for line in done.stderr.splitlines() if "arning" in line and "torch/" not in line] == []


def test_numpys_random_numbers_are_left_alone():
    (layer,) = layers("bigbird", 50)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    layer.train()(torch.randn(1, 50, 8))
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_performer_draws_its_features_anew():
    (layer,) = layers("performer", 50)
    layer.train()
    attention = layer.attention[0]
    attention.REDRAWN = 3
    seen = []
    for _ in range(4):
        layer(torch.randn(1, 50, 8))
        seen.append(attention.inner.fast_attention.inner.projection_matrix.clone())
    assert torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[1], seen[2])
    layer.eval()(torch.randn(1, 50, 8))
    assert torch.equal(seen[3], attention.inner.fast_attention.inner.projection_matrix)


def test_what_is_not_installed_is_said_with_its_cure(monkeypatch):
    monkeypatch.setattr(registry.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        registry.NotInstalledError, match=r"Linformer needs linformer; .*pip install 'paramixer\[baselines\]'"
    ):
        registry.layers(config("linformer"))


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("nystrom", {}, "did you mean 'nystromformer'"),
        ("linear", {"heads": 3}, "channels=8 cannot be shared by heads=3"),
        ("longformer", {"window": 5}, "choose it even"),
        ("transformer-ls", {"channels": 4, "heads": 4}, "two channels a head"),
        ("ngrams", {}, "is a model by itself"),
        ("s4d", {"heads": 2}, "S4D has no heads"),
    ],
)
def test_wrong_settings_are_told_in_one_line(name, fields, message):
    with pytest.raises(ValueError, match=message):
        registry.layers(config(name, **fields))
