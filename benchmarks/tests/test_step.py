from __future__ import annotations

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function

import paramixer as pm
from benchmarks import step
from paramixer.bench.status import ignore
from paramixer.recipes import PRESETS


@pytest.mark.parametrize("name", ["image", "text", "adding"])
def test_the_parts_of_a_step_add_up(name):
    measured = step.profile_step(pm.preset(name, length=64), batch=2, clip=1.0, repeats=1)
    shares = measured["shares"]
    assert tuple(shares) == step.PARTS
    assert sum(sum(phases.values()) for phases in shares.values()) == pytest.approx(1)
    assert measured["outside_paramix"] == pytest.approx(1 - sum(shares["paramix"].values()))
    assert all(share >= 0 for phases in shares.values() for share in phases.values())
    for part in ("paramix", "mlp", "linear", "loss"):
        assert shares[part]["forward"] > 0, part
        assert shares[part]["backward"] > 0, part
    assert shares["optimizer"]["forward"] > 0
    if name != "adding":
        for part in ("lookup", "dropout"):
            assert shares[part]["forward"] > 0, part
            assert shares[part]["backward"] > 0, part


def test_the_time_of_an_op_belongs_to_its_part_once():
    """A linear layer within the optimizer's part counts for the optimizer alone."""
    layer = torch.nn.Linear(64, 64)
    values = torch.randn(512, 64)
    with profile(activities=[ProfilerActivity.CPU]) as profiler, record_function(step._STEP):
        with record_function("optimizer"):
            layer(values)
        layer(values).sum().backward()
    shares = step.split_by_part(profiler.events())
    outermost = sum(event.cpu_time_total for event in profiler.events() if event.name == "optimizer")
    total = sum(event.cpu_time_total for event in profiler.events() if event.name == step._STEP)
    assert shares["optimizer"]["forward"] == pytest.approx(outermost / total)
    assert 0 < shares["linear"]["forward"] < 1 - shares["optimizer"]["forward"]
    assert shares["linear"]["backward"] > 0
    assert shares["paramix"] == {"forward": 0, "backward": 0}


def test_profiling_names_the_ops_of_this_library():
    model = pm.Paramixer(pm.preset("image", length=16))
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        model(torch.randint(256, (2, 16))).sum().backward()
    names = {event.name for event in profiler.events()}
    assert {"paramixer::paramix", "paramixer::paramix_backward", "paramixer::mlp", "paramixer::lookup"} <= names


def test_every_preset_is_among_the_defaults():
    assert step.StepOptions().presets == PRESETS


def test_unknown_presets_are_refused_before_anything_runs():
    with pytest.raises(ValueError, match="no preset 'imge', did you mean 'image'"):
        step.StepOptions(presets=("imge",))


def test_quick_steps_are_small():
    measured = step.measure(step.StepOptions(presets=("listops",), quick=True), ignore)["presets"]["listops"]
    assert (measured["batch"], measured["length"]) == (2, 64)
