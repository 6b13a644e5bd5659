"""The animated picture shows how CHORD works, and runs no script."""

from __future__ import annotations

import re

import pytest

import paramixer as pm
from experiments.travel import draw_travel, follow


@pytest.mark.parametrize(("length", "start"), [(16, 15), (16, 0), (37, 5)])
def test_a_value_goes_where_the_chain_takes_it(length, start):
    reached, hops = follow(length, start)
    assert reached[-1] == set(range(length))
    for factor, offsets in enumerate(pm.Chord().offsets(length).tolist()):
        # Position i reads from i + offset.
        expected = {i for i in range(length) if any((i + offset) % length in reached[factor] for offset in offsets)}
        assert reached[factor + 1] == expected
        assert {hop.target for hop in hops if hop.factor == factor} == expected
        firsts = [hop.target for hop in hops if hop.factor == factor and hop.is_first]
        assert sorted(firsts) == sorted(expected)


def test_the_picture_has_a_name_and_no_script(tmp_path):
    draw_travel(tmp_path / "travel.svg")
    text = (tmp_path / "travel.svg").read_text()
    assert "<script" not in text
    assert not re.search(r"\son\w+=|href|url\((?!#ring)", text)
    assert "<title" in text
    # Every rule that moves is for readers who want motion; without it all is visible.
    before, after = text.split("@media (prefers-reduced-motion: no-preference)")
    assert "animation" not in before
    assert "keyframes" not in before
    assert after.count("@keyframes") == 8
    assert "each reads 210 values" in text
