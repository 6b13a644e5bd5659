"""Learning-rate factors become parameter groups."""

from __future__ import annotations

import pytest

import paramixer as pm
from experiments.quick.parameter_groups import compute_factor, group_parameters


@pytest.mark.parametrize(("length", "factor"), [(12, 1.0), (300, 1.0), (1000, 0.3), (4096, 0.07)])
def test_a_factor_may_depend_on_the_length(length, factor):
    assert compute_factor("300/length", length) == factor


@pytest.mark.parametrize("factor", ["length/3", "300", "300/width"])
def test_a_factor_of_anything_else_is_named(factor):
    with pytest.raises(ValueError, match=f"learning-rate factor '{factor}'; write a number"):
        compute_factor(factor, 12)


def test_the_first_pattern_that_matches_counts():
    model = pm.Paramixer(pm.ParamixerConfig(layer="paper", length=1000, outputs=2, vocabulary=6, blocks=2))
    factors = {"head.linear.weight": "300/length", "head.*": 0.5, "blocks.*.[wb][12]": 0.1}
    names = {parameter: name for name, parameter in model.named_parameters()}
    groups = {
        group["lr_factor"]: [names[parameter] for parameter in group["params"]]
        for group in group_parameters(model, factors, 1000)
    }
    assert groups[0.3] == ["head.linear.weight"]
    assert groups[0.5] == ["head.linear.bias"]
    assert groups[0.1] == [f"blocks.{block}.{name}" for block in (0, 1) for name in ("w1", "b1", "w2", "b2")]
    assert sorted(name for group in groups.values() for name in group) == sorted(names.values())
