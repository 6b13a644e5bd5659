from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import paramixer as pm
from ops import cases


def make_layer(**options) -> pm.ParamixerLayer:
    return pm.ParamixerLayer(
        **({"length": 21, "width": 8, "heads": 2, "link_width": 3, "hidden": 5} | options),
        generator=torch.Generator().manual_seed(0),
    )


def forward_by_hand(layer: pm.ParamixerLayer, x: torch.Tensor) -> torch.Tensor:
    """The docstring's equations for one full sequence, with dense mixing matrices."""
    width, heads = layer.width, layer.heads
    gate, values, _ = layer.read(layer.norm(x)).split([width, width, heads * layer.link_width], -1)
    matrices = layer.mixing_matrix(x)
    slices = [matrices[:, head] @ part for head, part in enumerate(values.chunk(heads, -1))]
    mixed = torch.cat([F.layer_norm(part, part.shape[-1:]) for part in slices], -1)
    x = x + layer.write(mixed * F.silu(gate))
    return x + layer.down(F.gelu(layer.up(layer.mlp_norm(x))))


@pytest.mark.parametrize(
    "options",
    [{}, {"protocol": "chord"}, {"ring": True}, {"base": 2}, {"heads": 1}, {"protocol": pm.Links([[0, -1], [0, -3]])}],
    ids=str,
)
def test_the_layer_is_its_equations(options, generator):
    layer = make_layer(**options).double()
    x = torch.randn(2, 21, 8, generator=generator, dtype=torch.float64)
    cases.assert_close(layer(x), forward_by_hand(layer, x), 1e-10)


def test_heads_look_both_ways_where_the_protocol_looks_one_way(generator):
    layer = make_layer(protocol="chord")
    x = torch.randn(1, 21, 8, generator=generator)
    rows = layer.mixing_rows(x, [10])[0, :, 0]
    assert not rows[0, :10].any()
    assert rows[0, 11:].any()
    assert not rows[1, 11:].any()
    assert rows[1, :10].any()


def test_rows_columns_and_factors_are_those_of_the_matrices(generator):
    layer = make_layer()
    x, lengths = torch.randn(3, 21, 8, generator=generator), [21, 4, 1]
    with torch.no_grad():
        matrices = layer.mixing_matrix(x, lengths)
        assert layer.factors(x).shape == (3, 2, len(layer.offsets), 21, 9)
    assert matrices.shape == (3, 2, 21, 21)
    cases.assert_close(layer.mixing_rows(x, [0, 3], lengths), matrices[:, :, [0, 3]], 1e-5)
    cases.assert_close(layer.mixing_columns(x, [0, 3], lengths), matrices[:, :, :, [0, 3]].mT, 1e-5)


@pytest.mark.parametrize("ring", [True, False], ids=["ring", "line"])
def test_padding_changes_neither_outputs_nor_gradients(ring, generator):
    layer = make_layer(ring=ring).double()
    short = torch.randn(1, 5, 8, generator=generator, dtype=torch.float64)
    expected = layer(short)
    gradients = torch.autograd.grad(expected.square().sum(), layer.parameters())
    padded = torch.cat([short, torch.randn(1, 9, 8, generator=generator, dtype=torch.float64)], 1)
    answer = layer(padded, lengths=[5])[:, :5]
    cases.assert_close(answer, expected, 1e-10)
    for gradient, other in zip(gradients, torch.autograd.grad(answer.square().sum(), layer.parameters()), strict=True):
        cases.assert_close(gradient, other, 1e-9)


def test_the_gain_of_a_chain_does_not_matter(generator):
    layer = make_layer(factors=1).double()
    x = torch.randn(1, 21, 8, generator=generator, dtype=torch.float64)
    before = layer(x)
    with torch.no_grad():
        # Ten times every entry of the factor, its residual included.
        own = (layer.offsets == 0).double()
        layer.w2.mul_(10)
        layer.b2.copy_(10 * layer.b2 + 9 * own)
    cases.assert_close(layer(x), before, 1e-3)


def test_it_learns_in_a_plain_loop(generator):
    layer, head = make_layer(), torch.nn.Linear(8, 1)
    x = torch.randn(16, 21, 8, generator=generator)
    target = x[:, 0, 0] * 0.5 + x[:, 20, 1]
    optimizer = torch.optim.Adam([*layer.parameters(), *head.parameters()], lr=0.01)
    losses = []
    for _ in range(60):
        loss = F.mse_loss(head(layer(x).mean(1))[:, 0], target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.3 * losses[0]


def test_it_runs_in_bfloat16_and_under_autocast(generator):
    x = torch.randn(2, 21, 8, generator=generator)
    layer = make_layer()
    exact = layer(x)
    with torch.autocast("cpu", torch.bfloat16):
        cases.assert_close(layer(x).float(), exact, 0.1)
    cases.assert_close(make_layer().bfloat16()(x.bfloat16()).float(), exact, 0.2)


def test_it_compiles_in_one_graph_and_exports(generator):
    layer, x = make_layer(), torch.randn(2, 21, 8, generator=generator)
    exact = layer(x)
    cases.assert_close(torch.compile(layer, fullgraph=True, backend="aot_eager")(x), exact, 1e-5)
    cases.assert_close(torch.export.export(layer, (x,)).module()(x), exact, 1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"heads": 3}, "width=8 with heads=3; a head needs an equal share"),
        ({"heads": 4}, "at least 4 channels"),
        ({"hidden": 0}, "hidden=0; a layer needs at least 1"),
        ({"protocol": "chord", "base": 3}, "base=3 is for cdil"),
        ({"base": 10}, "base=10 with links=9"),
    ],
)
def test_wrong_settings_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        make_layer(**options)


def test_inputs_that_do_not_fit_are_named(generator):
    layer = make_layer()
    with pytest.raises(ValueError, match=r"x has shape \[2, 21, 4\], expected \[batch, length, 8\]"):
        layer(torch.randn(2, 21, 4, generator=generator))
    with pytest.raises(ValueError, match="length 22 exceeds the layer's 21"):
        layer(torch.randn(2, 22, 8, generator=generator))
    with pytest.raises(TypeError, match="convert one of them"):
        layer(torch.randn(2, 21, 8, generator=generator).double())
