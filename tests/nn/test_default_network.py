"""The default network: stems by kind of input, windows, poolings, and that padding changes nothing."""

from __future__ import annotations

import pytest
import torch

import paramixer as pm
from ops import cases
from paramixer.nn.config import POOLINGS as POOLING_NAMES
from paramixer.nn.pooling import POOLINGS, Standardize, Templates

SMALL = {"length": 40, "outputs": 3, "channels": 8, "blocks": 1, "heads": 2, "hidden": 4, "link_width": 4}
KINDS = {
    "symbols": {"vocabulary": 7, "pad": 0},
    "n-grams": {"vocabulary": 7, "pad": 0, "ngrams": 3, "ngram_rows": 400},
    "ordered ids": {"vocabulary": 11, "ordered_ids": True},
    "numbers": {"features": 2},
}


def make_model(kind: str, **fields) -> pm.Paramixer:
    config = pm.ParamixerConfig(**SMALL | KINDS[kind] | fields)
    model = pm.Paramixer(config, generator=torch.Generator().manual_seed(0))
    if config.ngrams:
        # The tables start at zero and would hide what they do.
        torch.nn.init.normal_(model.stem.rows.ngrams.weight, generator=torch.Generator().manual_seed(1))
    return model


def make_inputs(kind: str, batch: int, length: int, generator: torch.Generator) -> torch.Tensor:
    if kind == "numbers":
        return torch.randn(batch, length, 2, generator=generator)
    return torch.randint(1, KINDS[kind]["vocabulary"], (batch, length), generator=generator)


@pytest.mark.parametrize("window", [1, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_neither_outputs_nor_gradients(kind, window, generator):
    model = make_model(kind, window=window).double().eval()
    inputs = make_inputs(kind, 1, 13, generator)
    inputs = inputs.double() if inputs.is_floating_point() else inputs
    expected = model(inputs, [13])
    gradients = torch.autograd.grad(expected.square().sum(), model.parameters(), allow_unused=True)
    padded = torch.cat([inputs, make_inputs(kind, 1, 20, generator).to(inputs.dtype)], 1)
    answer = model(padded, [13])
    cases.assert_close(answer, expected, 1e-9)
    others = torch.autograd.grad(answer.square().sum(), model.parameters(), allow_unused=True)
    for gradient, other in zip(gradients, others, strict=True):
        assert (gradient is None) == (other is None)
        if gradient is not None:
            # Absolute: a softmax leaves the bias of its scores a gradient of rounding errors alone.
            torch.testing.assert_close(gradient.to_dense(), other.to_dense(), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_does_not_depend_on_the_other_sequences(kind, generator):
    model = make_model(kind).eval()
    inputs = make_inputs(kind, 5, 40, generator)
    with torch.no_grad():
        together = model(inputs)
        assert torch.equal(torch.cat([model(one[None]) for one in inputs]), together)


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_model_answers_the_same(kind, tmp_path, generator):
    model = make_model(kind, window=2).eval()
    inputs = make_inputs(kind, 3, 40, generator)
    model.observe([(inputs, None)])
    model.save_pretrained(tmp_path)
    loaded = pm.Paramixer.from_pretrained(tmp_path)
    assert type(loaded) is pm.Paramixer
    assert torch.equal(loaded(inputs), model(inputs))


def test_numbers_are_standardized_by_the_training_data(generator):
    model = make_model("numbers").eval()
    inputs = make_inputs("numbers", 6, 40, generator)
    model.observe([(inputs[:3], None), (inputs[3:], torch.tensor([40, 40, 40]))])
    moved = make_model("numbers").eval()
    moved.observe([(inputs * 1000 + 77, None)])
    cases.assert_close(moved(inputs * 1000 + 77), model(inputs), 1e-3)


def test_numbers_past_the_end_are_not_observed(generator):
    model, inputs = make_model("numbers"), make_inputs("numbers", 2, 40, generator)
    model.observe([(inputs, torch.tensor([40, 3]))])
    together = torch.cat([inputs[0], inputs[1, :3]])
    cases.assert_close(model.stem.rows.mean, together.mean(0), 1e-5)
    cases.assert_close(model.stem.rows.std, together.std(0, correction=0), 1e-5)


def test_ngrams_of_a_single_sequence_are_left_out():
    model = make_model("n-grams").eval()
    shared, rare = torch.tensor([1, 2, 3] * 4), torch.tensor([4, 5, 6] * 4)
    model.observe([(torch.stack([shared, shared, rare]), None)])
    bags = model.embed(torch.stack([shared, rare])).bag
    assert bags[0].any()
    assert not bags[1].any()


def test_every_pooling_has_a_name_in_the_config():
    assert tuple(POOLINGS) == POOLING_NAMES


@pytest.mark.parametrize("pooling", ["flat", "cls", "mean", "max", "attention", "templates", "mean+max", "token"])
@pytest.mark.parametrize("layer", ["prenorm", "paper"])
def test_every_pooling_serves_both_networks(layer, pooling, generator):
    fields = {"length": 12, "vocabulary": 5, "outputs": 3, "channels": 8, "padding": "length", "pooling": pooling}
    model = pm.Paramixer(pm.ParamixerConfig(layer=layer, **fields))
    answer = model(torch.randint(5, (2, 9), generator=generator), [9, 4])
    assert answer.shape == ((2, 9, 3) if pooling == "token" else (2, 3))
    answer.sum().backward()


def test_templates_start_as_cosines_and_interpolate_beyond_their_knots():
    templates = Templates(1000, 3)
    templates.reset_parameters()
    places = templates.at_positions(1000)
    assert places.shape == (4, 1000, 3)
    expected = 2**0.5 * torch.cos(torch.pi * torch.arange(1000) / 999)
    assert (places[0, :, 0] - expected).abs().max() < 0.02


def test_standardized_features_have_no_mean_and_the_scale_of_their_group(generator):
    standardize = Standardize([16, 256])
    features = torch.randn(4000, 272, generator=generator) * torch.linspace(1e-3, 10, 272) + 5
    for batch in features.split(40):
        standardize(batch)
    scaled = standardize.eval()(features)
    assert scaled.mean(0).abs().max() < 0.2
    cases.assert_close(scaled[:, :16].std(0), torch.ones(16), 0.2)
    cases.assert_close(scaled[:, 16:].std(0), torch.full((256,), 1 / 4), 0.2)


def test_a_bag_of_ngrams_speaks_louder_than_the_poolings_beside_it():
    model = make_model("n-grams")
    assert model.stem.bag_width == 16
    scale = model.standardize.scale
    assert torch.equal(scale[-16:], torch.ones(16))
    widths = [*model.pooling.widths, *model.stem_pooling.widths]
    assert sum(widths) == len(scale) - 16
    torch.testing.assert_close(scale[:-16], torch.cat([torch.full((w,), 0.1 * (16 / w) ** 0.5) for w in widths]))
    torch.testing.assert_close(make_model("numbers").standardize.scale, 10 * scale[:-16])


def test_statistics_do_not_follow_a_drift_at_a_fixed_distance(generator):
    """When a drift ends, as it does with the learning rate, what was standardized by the statistics stays as it was."""
    standardize, spread = Standardize([16]), torch.randn(32, 16, generator=generator) / 100
    for step in range(1000):
        standardize(spread + step / 1000)
    before = standardize.eval()(spread + 1).mean()
    for _ in range(20):
        standardize.train()(spread + 1)
    assert (standardize.eval()(spread + 1).mean() - before).abs() < 0.1


def test_noise_is_for_logits_not_for_values():
    for target, dropped in (("class", True), ("value", False)):
        model = make_model("numbers", target=target, outputs=2, head_dropout=0.5).train()
        assert (model.head_dropout.p > 0) == dropped


def test_the_first_answers_are_nearly_equal(generator):
    model = make_model("symbols").train()
    answers = model(make_inputs("symbols", 8, 40, generator))
    assert answers.softmax(1).sub(1 / 3).abs().max() < 0.2


def test_answers_start_at_the_mean_of_the_targets_and_have_their_scale(generator):
    model = make_model("numbers", target="value", outputs=1).eval()
    inputs = make_inputs("numbers", 6, 40, generator)
    with torch.no_grad():
        plain = model(inputs)
        model.observe([], 1000 + 50 * torch.tensor([-1.0, 1.0, -1.0, 1.0]))
        torch.testing.assert_close(model(inputs), 1000 + 50 * plain)
        model.observe([], torch.full((4,), 7.0))
        torch.testing.assert_close(model(inputs), 7 + plain)


def test_what_every_position_adds_to_the_bag_sums_to_the_bag(generator):
    model = make_model("n-grams", window=4).eval()
    inputs = make_inputs("n-grams", 2, 38, generator)
    shares = model.bag_shares(inputs)
    assert shares.shape == (2, 10, 16)
    torch.testing.assert_close(shares.sum(1), model.embed(inputs).bag)


def test_an_empty_batch_has_no_answers():
    assert make_model("symbols")(torch.zeros(0, 40, dtype=torch.int64)).shape == (0, 3)
