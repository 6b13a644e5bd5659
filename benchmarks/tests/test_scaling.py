from __future__ import annotations

import math

import pytest

from benchmarks import scaling
from paramixer.bench.status import ignore

LENGTHS = [2**power for power in range(12, 19)]


def test_times_that_follow_the_law_do_not_outgrow_it():
    law = scaling.LAWS["chord"]
    seconds = [3e-9 * math.log2(length) ** 2 for length in LENGTHS]
    assert scaling.growth(LENGTHS, seconds, law) == pytest.approx(1)
    assert scaling.fit(LENGTHS, seconds, law) == pytest.approx(3e-9)
    seconds[3] *= 1.25
    assert scaling.growth(LENGTHS, seconds, law) == pytest.approx(1.25)


def test_quadratic_attention_would_be_noticed():
    seconds = [1e-12 * length for length in LENGTHS]
    assert scaling.growth(LENGTHS, seconds, scaling.LAWS["cdil"]) > 40


def test_every_length_is_verified_and_timed():
    protocols = scaling.measure(scaling.ScalingOptions(quick=True), ignore)["protocols"]
    assert set(protocols) == {"chord", "cdil"}
    for protocol in protocols.values():
        assert protocol["why"] is None
        assert protocol["lengths"] == [32, 64, 128]
        assert protocol["batches"] == [4, 2, 1]
        assert len(protocol["both"]["seconds_a_token"]) == len(protocol["predicted"]) == 3


def test_a_wrong_backend_gets_no_time(monkeypatch):
    monkeypatch.setattr(scaling.verification, "verify", lambda *_: "wrong: its output is off")
    protocols = scaling.measure(scaling.ScalingOptions(quick=True), ignore)["protocols"]
    assert protocols["chord"] == {"law": "log^2 N", "why": "N = 32: wrong: its output is off"}


def test_an_empty_range_is_refused():
    with pytest.raises(ValueError, match="shortest=9, longest=8"):
        scaling.ScalingOptions(shortest=9, longest=8)
