"""The default network with one change: each does what its title says, and trains."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from experiments import ablations
from experiments.ablations import ABLATIONS, build_ablation, resolve_ablation
from experiments.cells import override
from experiments.tests.small import TINY
from paramixer.training.factory import build_model
from paramixer.training.runs.folder import RunFolder

SETTINGS = override(TINY, {"recipe": "default", "data.length": 300, "model": {"channels": 16}})


def build(title: str):
    settings = override(SETTINGS, {"recipe": f"ablation: {title}"})
    task = settings.load_task()
    return build_ablation(task, resolve_ablation(task, settings), 0)


def build_default():
    task = SETTINGS.load_task()
    return build_model(task, SETTINGS.resolve(task), 0)


@pytest.mark.parametrize("recipe", [recipe for recipe, ablation in ABLATIONS.items() if not ablation.symbols_only])
def test_each_trains_and_differs_from_the_default(recipe):
    title = ABLATIONS[recipe].title
    inputs = torch.rand(4, 300, 2) if SETTINGS.load_task().vocabulary is None else torch.randint(6, (4, 300))
    with torch.no_grad():
        given, default = (model(inputs) for model in (build(title).eval(), build_default().eval()))
    assert not torch.equal(given, default)
    outcome = ablations.train(override(SETTINGS, {"recipe": recipe}), Path("run"))
    assert RunFolder(Path("run")).read_record()["recipe"] == recipe
    assert outcome.test is not None


def test_without_mixing_no_position_reads_another():
    model = build("no mixing at all").eval()
    x = torch.randn(1, 9, 16, requires_grad=True)
    model.blocks[0](x)[0, 4].sum().backward()
    assert x.grad[0, 4].abs().sum() > 0
    assert x.grad[0].abs().sum(1).nonzero().flatten().tolist() == [4]


def test_static_links_do_not_depend_on_the_input():
    layer = build("static links").blocks[0]
    _, values, inputs = layer._read(torch.randn(1, 9, 16))
    other = layer._read(torch.randn(1, 9, 16))[2]
    assert torch.equal(layer._mix(inputs, values, None), layer._mix(other, values, None))


def test_the_number_of_factors_is_what_the_title_says():
    count = len(build_default().blocks[0].offsets)
    assert len(build("half the factors").blocks[0].offsets) == max(1, count // 2)
    assert len(build("twice the factors").blocks[0].offsets) == 2 * count


def test_without_n_grams_the_bag_is_gone(tmp_path):
    texts = tmp_path / "texts.csv"
    texts.write_text("text,label\n" + "".join(f"some words of number {n},{n % 2}\n" for n in range(60)))
    settings = override(SETTINGS, {"task": "own", "data": {"source": str(texts), "text": "text", "label": "label"}})
    settings = override(settings, {"recipe": "ablation: no n-grams"})
    task = settings.load_task()
    model = build_ablation(task, resolve_ablation(task, settings), 0)
    assert model.stem.bag_width == 0
    assert ablations.train(settings, tmp_path / "run").test is not None
