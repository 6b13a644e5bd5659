from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import paramixer as pm
from paramixer.bench import step
from paramixer.bench.progress import ignore


@pytest.mark.parametrize("name", ["image", "text", "adding"])
def test_the_parts_of_a_step_add_up(name):
    found = step.split(pm.preset(name, length=64), batch=2, clip=1.0, steps=1)
    shares = found["shares"]
    assert tuple(shares) == step.PARTS
    assert sum(sum(phases.values()) for phases in shares.values()) == pytest.approx(1)
    assert found["outside_paramix"] == pytest.approx(1 - sum(shares["paramix"].values()))
    for part in ("embedding", "g", "paramix", "head", "loss"):
        assert shares[part]["forward"] > 0, part
        assert shares[part]["backward"] > 0, part
    if name != "adding":
        assert shares["dropout"]["backward"] > 0


def test_the_time_of_a_part_is_booked_to_it(monkeypatch):
    """A slow g, forward and backward, is g's alone."""
    model = pm.Paramixer(pm.preset("adding", length=16))
    clock = step._Clock()
    clock.watch(model)
    answers = model(torch.rand(2, 16, 2))
    named = {part: {type(node).__name__ for node in clock._parts if clock._parts[node] == part} for part in step.PARTS}
    assert any("paramixer_mlp" in name for name in named["g"])
    assert any("paramixer_paramix" in name for name in named["paramix"])
    assert not any("paramixer_paramix" in name for part in ("g", "embedding", "head") for name in named[part])
    assert "AddBackward0" in named["embedding"]
    clock.follow(F.mse_loss(answers, torch.zeros(2)))


def test_watching_changes_no_gradient():
    config = pm.preset("adding", length=16)
    inputs = torch.rand(2, 16, 2)
    gradients = []
    for watched in (False, True):
        model = pm.Paramixer(config, generator=torch.Generator().manual_seed(0))
        clock = step._Clock()
        if watched:
            clock.watch(model)
        loss = model(inputs).square().sum()
        if watched:
            clock.follow(loss)
        loss.backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


def test_every_preset_is_among_the_defaults():
    with pytest.raises(ValueError) as caught:
        pm.preset("no such")
    known = str(caught.value).split("choose from ")[1].split(", ")
    assert sorted(step.PRESETS) == sorted(known)


def test_unknown_presets_are_refused_before_anything_runs():
    with pytest.raises(ValueError, match="no preset 'imge', did you mean 'image'"):
        step.StepOptions(presets=("imge",))


def test_quick_steps_are_small():
    found = step.measure(step.StepOptions(presets=("listops",), quick=True), ignore)["presets"]["listops"]
    assert (found["batch"], found["length"]) == (2, 64)
