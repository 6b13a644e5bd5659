"""Explanations against dense matrices and derivatives, which they never form."""

from __future__ import annotations

import pytest
import torch

import paramixer as pm
from paramixer.baselines import registry
from paramixer.baselines.config import BaselineConfig
from paramixer.nn.sequence_model import Embedded, SequenceModel

BASELINES = [name for name, baseline in registry.BASELINES.items() if not baseline.closed_form]


SETTINGS = {"length": 20, "vocabulary": 7, "outputs": 3, "channels": 6, "hidden": 5, "blocks": 2, "pooling": "mean"}


def build(**fields: object) -> pm.Paramixer:
    config = pm.ParamixerConfig(layer="paper", **SETTINGS | fields)
    return pm.Paramixer(config, generator=torch.Generator().manual_seed(1)).double()


def build_baseline(name: str, **fields: object) -> SequenceModel:
    config = BaselineConfig(**SETTINGS | {"model": name} | fields)
    return registry.build(config, torch.Generator().manual_seed(1)).double()


def tokens(count: int = 20) -> torch.Tensor:
    return torch.randint(1, 7, (count,), generator=torch.Generator().manual_seed(2))


def mixing_matrices(model: pm.Paramixer, inputs: torch.Tensor, lengths: torch.Tensor | None) -> list[torch.Tensor]:
    """A of every block, dense."""
    first = model.embed(inputs[None]).values
    values, matrices = first, []
    for block in model.blocks:
        link_input = first if model.config.link_input == "first" else values
        matrices.append(block.mixing_matrix(link_input, lengths)[0])
        values = block(values, link_input, lengths)
    return matrices


@pytest.mark.parametrize("residual", ["factor", "block", "none"])
@pytest.mark.parametrize("link_input", ["first", "block"])
@pytest.mark.parametrize(("padding", "count"), [("symbol", 20), ("length", 20), ("length", 13)])
def test_rows_columns_and_rollout_are_those_of_the_dense_matrices(residual, link_input, padding, count):
    model = build(residual=residual, link_input=link_input, padding=padding, pad=0 if padding == "symbol" else None)
    explanation = pm.explain(model, tokens(count), [0, 5, count - 1], derivatives=False)
    lengths = torch.tensor([count]) if padding == "length" else None
    dense = mixing_matrices(model.eval(), tokens(count), lengths)
    for block, matrix in enumerate(dense):
        torch.testing.assert_close(explanation.rows[block], matrix[[0, 5, count - 1]])
        torch.testing.assert_close(explanation.columns[block], matrix.T[[0, 5, count - 1]])
    torch.testing.assert_close(explanation.rollout, (dense[1] @ dense[0])[[0, 5, count - 1]])


@pytest.mark.parametrize("name", ["paramixer", "transformer", "chordmixer"])
def test_derivatives_are_exact(name):
    model = (build() if name == "paramixer" else build_baseline(name)).eval()
    explanation = pm.explain(model, tokens(), [3, 19])
    first = model.embed(tokens()[None]).values.detach()
    full = torch.autograd.functional.jacobian(lambda start: model.mix(Embedded(start))[0, [3, 19]], first)[:, :, 0]
    torch.testing.assert_close(explanation.jacobian, full.square().sum((1, 3)).sqrt())


def test_derivatives_can_be_left_out():
    model = build()
    full, quick = (pm.explain(model, tokens(), [3], derivatives=derivatives) for derivatives in (True, False))
    assert quick.jacobian is None
    assert full.jacobian is not None
    for name in ("rows", "columns", "rollout", "evidence", "occlusion"):
        assert torch.equal(getattr(quick, name), getattr(full, name))


def test_evidence_is_gradient_times_input_and_occlusion_a_difference():
    model = build(positions=False).eval()
    explanation = pm.explain(model, tokens(), target=1, window=6)
    first = model.embed(tokens()[None]).values.detach().requires_grad_()
    answer = model.answer(model.mix(Embedded(first)), Embedded(first))[0]
    score = answer[1] - (answer[0] + answer[2]) / 2
    (gradient,) = torch.autograd.grad(score, first)
    torch.testing.assert_close(explanation.evidence, (gradient * first)[0].sum(-1).detach())
    for start, stop in ((0, 6), (6, 12), (12, 18), (18, 20)):
        occluded = first.detach().clone()
        occluded[0, start:stop] = first[0].mean(0).detach()
        other = model.answer(model.mix(Embedded(occluded)), Embedded(occluded))[0]
        fall = score - (other[1] - (other[0] + other[2]) / 2)
        torch.testing.assert_close(explanation.occlusion[start:stop], fall.detach().expand(stop - start))


def test_a_value_is_explained_too():
    config = pm.ParamixerConfig(layer="paper", length=16, features=2, outputs=1, target="value", channels=4, hidden=4)
    explanation = pm.explain(pm.Paramixer(config), torch.randn(16, 2))
    assert explanation.target is None
    assert explanation.positions == (int(explanation.evidence.abs().argmax()),)
    assert explanation.evidence.shape == explanation.occlusion.shape == (16,)


@pytest.mark.parametrize("name", BASELINES)
def test_baselines_have_derivatives_and_evidence(name):
    config = BaselineConfig(length=20, vocabulary=7, outputs=3, channels=8, model=name, pooling="mean")
    explanation = pm.explain(registry.build(config), tokens(), [4])
    assert explanation.rows is explanation.columns is explanation.rollout is None
    assert explanation.jacobian.isfinite().all()
    assert explanation.evidence.abs().sum() > 0
    assert explanation.occlusion.isfinite().all()


def test_the_model_is_left_as_it_was():
    model = build(block_dropout=0.5).train()
    one, other = (pm.explain(model, tokens()) for _ in range(2))
    assert model.training
    assert torch.equal(one.evidence, other.evidence)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_what_cannot_be_explained_is_refused():
    with pytest.raises(ValueError, match="position 20 is outside the sequence, 0 to 19"):
        pm.explain(build(), tokens(), [20])
    with pytest.raises(ValueError, match="target=3"):
        pm.explain(build(), tokens(), target=3)
    with pytest.raises(ValueError, match="answers at every position"):
        pm.explain(build(pooling="token"), tokens())
    with pytest.raises(ValueError, match="window=0; it must be at least 1"):
        pm.explain(build(), tokens(), window=0)
    ngrams = registry.build(BaselineConfig(length=20, vocabulary=7, outputs=3, model="ngrams", rank=16))
    with pytest.raises(TypeError, match="a Ngrams has no embedding to explain"):
        pm.explain(ngrams, tokens())


def test_a_long_row_needs_no_square_matrix():
    model = pm.Paramixer(pm.ParamixerConfig(layer="paper", length=16384, vocabulary=7, outputs=2, channels=4, hidden=4))
    rows = model.blocks[0].mixing_rows(model.embed(torch.randint(7, (1, 16384))).values, [77])
    assert rows.shape == (1, 1, 16384)
    assert (rows != 0).float().mean() > 0.99


def test_it_works_inside_inference_mode_and_takes_tensors_only():
    model = build().eval()
    with torch.inference_mode():
        inside = pm.explain(model, tokens(), [3])
    torch.testing.assert_close(inside.evidence, pm.explain(model, tokens(), [3]).evidence)
    with pytest.raises(TypeError, match="inputs are a list, expected a torch.Tensor"):
        pm.explain(model, [1, 2, 3])


def test_progress_sees_every_pass():
    seen = []

    def progress(items, what):
        for item in items:
            seen.append(what)
            yield item

    pm.explain(build(), tokens(), [3, 4], window=1, progress=progress)
    assert seen.count("derivatives of the channels") == 2 * 6
    assert seen.count("occluded windows") == 3


def test_the_bag_of_ngrams_is_explained_too(generator):
    """A model whose head reads nothing but the bag: the n-gram that it reads is where the evidence is."""
    config = pm.ParamixerConfig(length=40, outputs=2, vocabulary=10, pad=0, ngrams=2, ngram_rows=200, window=4)
    model = pm.Paramixer(config, generator=generator).eval()
    tables = model.stem.rows.ngrams
    with torch.no_grad():
        model.stem.rows.widen.weight.zero_()
        model.readout.weight.zero_()
        model.readout.weight[1, -16:] = 1
        # The 2-gram (7, 8), which ends at position 21.
        tables.weight[tables.layout.blocks[0].start + 78] = 1
    inputs = torch.randint(1, 6, (40,), generator=generator)
    inputs[20:22] = torch.tensor([7, 8])
    explanation = pm.explain(model, inputs, target=1, window=4, derivatives=False)
    for part in (explanation.evidence, explanation.occlusion):
        assert (part[20:24] > 0).all()
        assert part[:20].abs().max() < 1e-6
        assert part[24:].abs().max() < 1e-6
