"""Every network the library trains becomes a program that answers as the model, at every length and batch size."""

from __future__ import annotations

import pytest
import torch

import paramixer as pm
from paramixer.baselines import registry
from paramixer.export import program
from paramixer.export.formats import FORMATS

SMALL = {"channels": 8, "blocks": 1, "heads": 2, "hidden": 3, "link_width": 3, "links": 3, "factors": 2}
TOKENS = {"vocabulary": 9, "pad": 0, "outputs": 3}
CONFIGS = {
    "texts": {**SMALL, **TOKENS, "ngrams": 3, "ngram_rows": 50},
    "windows": {**SMALL, **TOKENS, "ngrams": 2, "window": 3},
    "numbers": {**SMALL, "features": 2, "outputs": 2},
    "values in windows": {**SMALL, "features": 1, "outputs": 1, "target": "value", "window": 4},
    "ordered ids": {**SMALL, "vocabulary": 9, "outputs": 3, "ordered_ids": True},
    "ring and chord": {**SMALL, **TOKENS, "ring": True, "protocol": "chord"},
    "flat and cls": {**SMALL, **TOKENS, "pooling": "flat+cls"},
    "an answer for each token": {**SMALL, **TOKENS, "pooling": "token"},
    "paper": {"layer": "paper", **TOKENS},
    "paper, own lengths": {"layer": "paper", **TOKENS, "padding": "length", "pooling": "mean"},
    "paper, numbers": {"layer": "paper", "features": 2, "outputs": 1, "target": "value"},
}


def make_model(name):
    generator = torch.Generator().manual_seed(0)
    model = pm.Paramixer(pm.ParamixerConfig(length=21, **CONFIGS[name]), generator=generator).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            # Tables of n-grams and biases start at zero, which would hide them.
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return model


def check(model, format):
    lowered = program.trace(model)
    assert not [node for node in lowered.graph.nodes if "paramixer" in str(node.target)]
    _, run = FORMATS[format](lowered)
    assert program.check_outputs(model, run, format, 1e-5) <= 1e-5


@pytest.mark.parametrize("name", ["texts", "numbers"])
def test_a_program_of_torch(name):
    check(make_model(name), "pt2")


def test_sums_over_positions_are_of_double_precision():
    """A runtime that adds up one after the other loses three digits over 5 000 positions."""
    nodes = [node for node in program.trace(make_model("texts")).graph.nodes if "aten.sum" in str(node.target)]
    over_positions = [node for node in nodes if node.args[0].meta["val"].dtype == torch.float64]
    assert len(over_positions) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("format", FORMATS)
def test_every_network_in_every_format(name, format):
    check(make_model(name), format)


@pytest.mark.slow
@pytest.mark.parametrize(
    "task", ["adding", "order", "listops", "image", "text", "pathfinder", "documents-16k", "hfdna"]
)
def test_the_presets_of_the_paper(task):
    check(pm.Paramixer(pm.preset(task, length=64), generator=torch.Generator().manual_seed(0)).eval(), "onnx")


def test_a_model_that_cannot_be_traced_says_so_in_one_sentence():
    config = registry.BaselineConfig(model="ngrams", length=9, outputs=2, vocabulary=5, rank=64)
    with pytest.raises(
        ValueError, match="the model cannot be exported, because torch.export cannot trace it: "
    ) as caught:
        program.trace(registry.build(config).eval())
    assert "\n" not in str(caught.value)


def test_a_difference_and_nan_are_refused():
    model = make_model("numbers")
    for wrong in (1.001, torch.nan):
        with pytest.raises(ValueError, match="the copy differs from the model by .* nothing was written"):
            program.check_outputs(model, lambda inputs, wrong=wrong: model(*inputs.values()) * wrong, "the copy", 1e-5)


def test_lengths_and_batches_of_the_check_vary():
    shapes = program.check_shapes(make_model("windows"))
    assert {width for _, width in shapes} >= {4, 5, 21}
    assert len({batch for batch, _ in shapes}) > 2
