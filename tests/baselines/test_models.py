"""What every baseline must do, whichever package it comes from."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

import paramixer as pm
from paramixer.baselines import registry
from paramixer.baselines.config import BaselineConfig
from paramixer.baselines.model import BaselineModel

BASELINES = [name for name, baseline in registry.BASELINES.items() if not baseline.closed_form]
# Their hashes or sorts are drawn in every pass and may miss.
RANDOM = ("reformer", "sinkhorn")


def config(name: str, **fields: object) -> BaselineConfig:
    settings = {"length": 50, "vocabulary": 9, "outputs": 3, "channels": 8, "hidden": 12, "padding": "length"}
    return BaselineConfig(**settings | {"model": name, "pooling": "mean"} | fields)


def build(name: str, seed: int = 1, **fields: object) -> BaselineModel:
    return registry.build(config(name, **fields), torch.Generator().manual_seed(seed)).eval()


def build_layer(name: str, length: int) -> torch.nn.Module:
    return build(name, length=length).blocks[0]


def run(model: torch.nn.Module, *inputs: torch.Tensor) -> torch.Tensor:
    torch.manual_seed(0)
    return model(*inputs)


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("length", [1, 2, 17, 50])
def test_values_keep_their_shape_at_any_length(name, length):
    layer = build_layer(name, 50)
    values = torch.randn(3, length, 8)
    mixed = layer(values)
    assert mixed.shape == values.shape
    assert mixed.isfinite().all()


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("length", [2, 3, 5])
def test_very_short_sequences_work(name, length):
    layer = build_layer(name, length)
    assert layer(torch.randn(2, length, 8)).isfinite().all()


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("heads", [1, 2])
def test_every_parameter_learns(name, heads):
    heads = heads if registry.get(name).has_heads else 1
    model = build(name, heads=heads, blocks=2, pooling="token").train()
    run(model, torch.randint(9, (3, 41), generator=torch.Generator().manual_seed(0))).square().sum().backward()
    for which, parameter in model.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, which
            assert parameter.grad.isfinite().all(), which
            assert parameter.grad.abs().sum() > 0, which


@pytest.mark.parametrize("name", BASELINES)
def test_position_0_sees_the_last_token(name):
    gradients = []
    layer = build_layer(name, 50).train(name in RANDOM)
    for seed in range(20 if name in RANDOM else 3):
        values = torch.randn(1, 47, 8, generator=torch.Generator().manual_seed(seed), requires_grad=True)
        torch.manual_seed(seed)
        (gradient,) = torch.autograd.grad(layer(values)[0, 0].square().sum(), values)
        gradients.append(float(gradient[0, -1].abs().sum()))
    assert max(gradients) > 1e-6
    if name not in RANDOM:
        assert min(gradients) > 0


@pytest.mark.parametrize("name", BASELINES)
def test_padding_does_not_leak(name):
    model = build(name)
    draw = torch.Generator().manual_seed(3)
    tokens, lengths = torch.randint(9, (3, 44), generator=draw), torch.tensor([44, 13, 30])
    with torch.no_grad():
        whole = run(model, tokens, lengths)
        other = tokens.clone()
        for row, length in enumerate(lengths):
            other[row, length:] = 8 - other[row, length:]
        # Tokens past the end do not count, ...
        torch.testing.assert_close(run(model, other, lengths), whole, rtol=0, atol=0)
        if name == "nystromformer":
            # Its pseudo-inverse starts from the largest entry of the whole batch.
            return
        # ... nor how many there are, nor the other sequences of the batch.
        for row, length in enumerate(lengths):
            alone = run(model, tokens[row : row + 1, :length], lengths[row : row + 1])
            torch.testing.assert_close(alone[0], whole[row], rtol=0, atol=2e-6)


@pytest.mark.parametrize("name", BASELINES)
def test_padding_may_be_nan(name):
    layer = build_layer(name, 20)
    values, lengths = torch.randn(2, 20, 8), torch.tensor([20, 7])
    values[1, 7:] = torch.nan
    values.requires_grad_()
    mixed = layer(values, lengths)
    assert mixed[:1].isfinite().all()
    assert (mixed[1, 7:] == 0).all()
    (gradient,) = torch.autograd.grad(mixed.square().sum(), values)
    assert (gradient[1, 7:] == 0).all()
    assert gradient.isfinite().all()


@pytest.mark.parametrize("name", BASELINES)
def test_saved_and_loaded_it_answers_the_same(name, tmp_path):
    model = build(name, heads=2 if registry.get(name).has_heads else 1)
    tokens = torch.randint(9, (2, 33))
    model.save_pretrained(tmp_path)
    before = torch.get_rng_state()
    loaded = registry.load_pretrained(tmp_path)
    assert torch.equal(torch.get_rng_state(), before)
    assert loaded.config == model.config
    assert torch.equal(run(loaded, tokens), run(model, tokens))


@pytest.mark.parametrize("name", BASELINES)
def test_the_generator_decides_all_parameters(name):
    global_state = torch.get_rng_state()
    first, again, other = (build(name, seed).state_dict() for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), global_state)
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert any(not torch.equal(first[key], other[key]) for key in first if key.startswith("blocks"))


@pytest.mark.parametrize("name", BASELINES)
def test_bf16_autocast_stays_near(name):
    model = build(name)
    tokens = torch.randint(9, (2, 50), generator=torch.Generator().manual_seed(0))
    plain = run(model, tokens)
    with torch.autocast("cpu", torch.bfloat16):
        half = run(model, tokens)
    # A hash may differ.
    assert float((half.float() - plain).detach().abs().max()) < (0.2 if name in RANDOM else 0.05)
    with torch.autocast("cpu", torch.bfloat16):
        run(model.train(), tokens).float().square().sum().backward()


@pytest.mark.parametrize("name", BASELINES)
def test_longer_than_the_model_is_refused(name):
    with pytest.raises(ValueError, match=r"length 51 exceeds the model's 50"):
        build(name)(torch.zeros(1, 51, dtype=torch.int64))


@pytest.mark.parametrize("name", BASELINES)
def test_features_are_what_the_linear_layer_reads(name):
    model = build(name)
    tokens, lengths = torch.randint(9, (2, 33)), torch.tensor([33, 20])
    features = run(model.features, tokens, lengths)
    assert features.shape == (2, 8)
    torch.testing.assert_close(model.head.linear(features), run(model, tokens, lengths))


def test_running_them_prints_nothing(capfd):
    for name in BASELINES:
        build_layer(name, 16)(torch.randn(1, 16, 8))
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")


@pytest.mark.slow
def test_importing_them_prints_nothing():
    code = """
import torch
from paramixer.baselines import registry
from paramixer.baselines.config import BaselineConfig
for name, baseline in registry.BASELINES.items():
    if not baseline.closed_form:
        config = BaselineConfig(length=16, vocabulary=9, outputs=3, channels=8, model=name)
        registry.make_layer(config)(torch.randn(1, 16, 8))
"""
    done = subprocess.run([sys.executable, "-W", "default", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    # Warnings from within torch do not count.
    assert [line for line in done.stderr.splitlines() if "arning" in line and "torch/" not in line] == []


def test_numpys_random_state_is_restored():
    layer = build_layer("bigbird", 50)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    layer.train()(torch.randn(1, 50, 8))
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_performer_redraws_its_features():
    layer = build_layer("performer", 50)
    layer.train()
    attention = layer.attention[0]
    attention.REDRAW_EVERY = 3
    matrices = []
    for _ in range(4):
        layer(torch.randn(1, 50, 8))
        matrices.append(attention.inner.fast_attention.inner.projection_matrix.clone())
    assert torch.equal(matrices[0], matrices[1])
    assert not torch.equal(matrices[1], matrices[2])
    layer.eval()(torch.randn(1, 50, 8))
    assert torch.equal(matrices[3], attention.inner.fast_attention.inner.projection_matrix)


def test_a_missing_package_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setattr(registry.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        registry.NotInstalledError, match=r"Linformer needs linformer; .*pip install 'paramixer\[baselines\]'"
    ):
        registry.build(config("linformer"))


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("nystrom", {}, "did you mean 'nystromformer'"),
        ("linear", {"heads": 3}, "channels=8 cannot be divided among heads=3"),
        ("longformer", {"window": 5}, "choose it even"),
        ("transformer-ls", {"channels": 4, "heads": 4}, "two channels per head"),
        ("s4d", {"heads": 2}, "S4D has no heads"),
    ],
)
def test_wrong_settings_are_named_in_one_line(name, fields, message):
    with pytest.raises(ValueError, match=message):
        registry.build(config(name, **fields))


def test_a_closed_form_model_has_no_layers():
    with pytest.raises(ValueError, match="ngrams is a whole model, without layers"):
        registry.make_layer(config("ngrams"))
    with pytest.raises(TypeError, match="config is a ParamixerConfig, expected a BaselineConfig"):
        registry.build(pm.ParamixerConfig(layer="paper", length=8, vocabulary=9, outputs=3))
