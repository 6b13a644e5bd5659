from __future__ import annotations

import pytest
import torch

import paramixer as pm
from paramixer.ops import backends


@pytest.fixture
def counted(monkeypatch):
    """A stand-in engine called "counting" that serves float32 only and counts its calls."""

    class Counting:
        calls = 0

        def missing(self):
            return None

        def refuses(self, values):
            return None if values.dtype == torch.float32 else "it serves float32 only"

        def link_mix(self, weights, values, *rest):
            self.calls += 1
            return torch.zeros_like(values)

    engine = Counting()
    monkeypatch.setattr(backends, "ENGINES", {"counting": engine, **backends.ENGINES})
    return engine


def mix(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return pm.link_mix(torch.ones(1, 4, 1, dtype=dtype), torch.ones(1, 4, 2, dtype=dtype), [1])


def test_backends_say_what_is_there_and_why_not():
    found = pm.backends()
    assert found["reference"].available
    assert str(found["reference"]) == "available"
    assert set(found) == {"reference", "cpu", "triton"}
    for availability in found.values():
        assert bool(availability) != bool(availability.why)


def test_auto_takes_the_first_engine_that_can_serve(counted):
    mix()
    assert counted.calls == 1
    mix(torch.float64)
    assert counted.calls == 1
    with pm.backend("reference"):
        assert mix().eq(1).all()
    assert counted.calls == 1


def test_an_engine_asked_for_by_name_that_cannot_serve_raises(counted):
    with pm.backend("counting"), pytest.raises(RuntimeError, match="'counting' cannot serve.*float32 only"):
        mix(torch.float64)
    with pm.backend("triton"), pytest.raises(RuntimeError, match="'triton' cannot serve"):
        mix()


def test_compiled_graphs_obey_the_backend(counted):
    compiled = torch.compile(mix, fullgraph=True, backend="aot_eager")
    compiled()
    assert counted.calls == 1
    with pm.backend("reference"):
        assert compiled().eq(1).all()
    assert counted.calls == 1


def test_environment_variable_does_the_same_and_yields_to_the_context(counted, monkeypatch):
    monkeypatch.setenv("PARAMIXER_BACKEND", "reference")
    mix()
    assert counted.calls == 0
    with pm.backend("auto"):
        mix()
    assert counted.calls == 1
    monkeypatch.setenv("PARAMIXER_BACKEND", "fast")
    with pytest.raises(ValueError, match="PARAMIXER_BACKEND: there is no backend 'fast'; choose from auto"):
        mix()


def test_a_wrong_name_is_refused_at_once():
    with pytest.raises(ValueError, match="no backend 'nonsense'"):
        pm.backend("nonsense")


def test_contexts_may_end_in_any_order(counted):
    first, second = pm.backend("reference"), pm.backend("counting")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    mix()
    assert counted.calls == 1
    second.__exit__(None, None, None)
    with pm.backend("reference"):
        mix()
    assert counted.calls == 1


def test_contexts_nest_and_end(counted):
    with pm.backend("reference"):
        with pm.backend("counting"):
            mix()
        mix()
    assert counted.calls == 1
    with pytest.raises(ValueError, match="no backend 'gpu'"), pm.backend("gpu"):
        pass
    mix()
    assert counted.calls == 2
