"""Explanations against the dense matrices and derivatives that they never make."""

from __future__ import annotations

import pytest
import torch

import paramixer as pm
from paramixer.baselines import registry

BASELINES = [name for name, found in registry.BASELINES.items() if not found.linear]


def model(**fields: object) -> pm.Paramixer:
    settings = {"length": 20, "vocabulary": 7, "outputs": 3, "channels": 6, "hidden": 5, "blocks": 2, "pooling": "mean"}
    config = pm.ParamixerConfig(**settings | fields)
    return pm.Paramixer(config, generator=torch.Generator().manual_seed(1)).double()


def tokens(count: int = 20) -> torch.Tensor:
    return torch.randint(1, 7, (count,), generator=torch.Generator().manual_seed(2))


def matrices(network: pm.Paramixer, inputs: torch.Tensor, lengths: torch.Tensor | None) -> list[torch.Tensor]:
    """A of every block, dense."""
    first = network._embed(inputs[None])
    values, found = first, []
    for block in network.blocks:
        written_from = first if network.config.link_input == "first" else values
        found.append(block.mixing_matrix(written_from, lengths)[0])
        values = block(values, written_from, lengths)
    return found


@pytest.mark.parametrize("residual", ["factor", "block", "none"])
@pytest.mark.parametrize("link_input", ["first", "block"])
@pytest.mark.parametrize(("padding", "count"), [("symbol", 20), ("length", 20), ("length", 13)])
def test_rows_columns_and_rollout_are_those_of_the_dense_matrices(residual, link_input, padding, count):
    network = model(residual=residual, link_input=link_input, padding=padding, pad=0 if padding == "symbol" else None)
    found = pm.explain(network, tokens(count), [0, 5, count - 1])
    lengths = torch.tensor([count]) if padding == "length" else None
    dense = matrices(network.eval(), tokens(count), lengths)
    for block, matrix in enumerate(dense):
        torch.testing.assert_close(found.rows[block], matrix[[0, 5, count - 1]])
        torch.testing.assert_close(found.columns[block], matrix.T[[0, 5, count - 1]])
    torch.testing.assert_close(found.rollout, (dense[1] @ dense[0])[[0, 5, count - 1]])


@pytest.mark.parametrize("mixer", ["paramixer", "transformer", "chordmixer"])
def test_derivatives_are_exact(mixer):
    network = model(mixer=mixer).eval()
    found = pm.explain(network, tokens(), [3, 19])
    first = network._embed(tokens()[None]).detach()
    whole = torch.autograd.functional.jacobian(lambda start: network._mixed(start, None)[0, [3, 19]], first)[:, :, 0]
    torch.testing.assert_close(found.jacobian, whole.square().sum((1, 3)).sqrt())


def test_derivatives_are_left_out_where_they_are_not_wanted():
    network = model()
    whole, quick = (pm.explain(network, tokens(), [3], derivatives=wanted) for wanted in (True, False))
    assert quick.jacobian is None
    assert whole.jacobian is not None
    for name in ("rows", "columns", "rollout", "evidence", "occlusion"):
        assert torch.equal(getattr(quick, name), getattr(whole, name))


def test_evidence_is_gradient_times_input_and_occlusion_a_difference():
    network = model(positions=False).eval()
    found = pm.explain(network, tokens(), target=1, window=6)
    first = network._embed(tokens()[None]).detach().requires_grad_()
    answer = network.head(network._mixed(first, None), None)[0]
    score = answer[1] - (answer[0] + answer[2]) / 2
    (gradient,) = torch.autograd.grad(score, first)
    torch.testing.assert_close(found.evidence, (gradient * first)[0].sum(-1).detach())
    for start, stop in ((0, 6), (6, 12), (12, 18), (18, 20)):
        blotted = first.detach().clone()
        blotted[0, start:stop] = first[0].mean(0).detach()
        other = network.head(network._mixed(blotted, None), None)[0]
        fall = score - (other[1] - (other[0] + other[2]) / 2)
        torch.testing.assert_close(found.occlusion[start:stop], fall.detach().expand(stop - start))


def test_a_value_is_explained_too():
    config = pm.ParamixerConfig(length=16, features=2, outputs=1, target="value", channels=4, hidden=4)
    found = pm.explain(pm.Paramixer(config), torch.randn(16, 2))
    assert found.target is None
    assert found.positions == (int(found.evidence.abs().argmax()),)
    assert found.evidence.shape == found.occlusion.shape == (16,)


@pytest.mark.parametrize("name", BASELINES)
def test_rivals_have_derivatives_and_evidence(name):
    config = pm.ParamixerConfig(length=20, vocabulary=7, outputs=3, channels=8, mixer=name, pooling="mean")
    found = pm.explain(pm.Paramixer(config), tokens(), [4])
    assert found.rows is found.columns is found.rollout is None
    assert found.jacobian.isfinite().all()
    assert found.evidence.abs().sum() > 0
    assert found.occlusion.isfinite().all()


def test_the_model_is_left_as_it_was():
    network = model(block_dropout=0.5).train()
    one, other = (pm.explain(network, tokens()) for _ in range(2))
    assert network.training
    assert torch.equal(one.evidence, other.evidence)
    assert all(parameter.grad is None for parameter in network.parameters())


def test_what_cannot_be_explained_is_said():
    with pytest.raises(ValueError, match="position 20 is outside the sequence, 0 to 19"):
        pm.explain(model(), tokens(), [20])
    with pytest.raises(ValueError, match="target=3"):
        pm.explain(model(), tokens(), target=3)
    with pytest.raises(ValueError, match="answers at every position"):
        pm.explain(model(pooling="token"), tokens())


def test_a_long_row_needs_no_square():
    network = pm.Paramixer(pm.ParamixerConfig(length=16384, vocabulary=7, outputs=2, channels=4, hidden=4))
    rows = network.blocks[0].mixing_rows(network._embed(torch.randint(7, (1, 16384))), [77])
    assert rows.shape == (1, 1, 16384)
    assert (rows != 0).float().mean() > 0.99


def test_it_works_inside_inference_mode_and_takes_tensors_only():
    network = model().eval()
    with torch.inference_mode():
        inside = pm.explain(network, tokens(), [3])
    torch.testing.assert_close(inside.evidence, pm.explain(network, tokens(), [3]).evidence)
    with pytest.raises(TypeError, match="inputs are a list, expected a torch.Tensor"):
        pm.explain(network, [1, 2, 3])


def test_long_work_is_counted():
    seen = []

    def count(items, what):
        for item in items:
            seen.append(what)
            yield item

    pm.explain(model(), tokens(), [3, 4], window=1, count=count)
    assert seen.count("derivatives of the channels") == 2 * 6
    assert seen.count("windows blotted out") == 3
