from __future__ import annotations

import importlib.util
import re

import pytest
import torch

import paramixer as pm
from paramixer.ops.backends import BACKENDS


@pytest.fixture
def counter():
    """A stand-in backend called "counting" that serves float32 only and counts its calls."""

    class Counting:
        calls = 0
        takes_half = False

        def unavailable_reason(self):
            return None

        def unsupported_reason(self, values):
            return None if values.dtype == torch.float32 else "it serves float32 only"

        def link_mix(self, weights, values, *rest):
            self.calls += 1
            return torch.zeros_like(values)

    stand_in, before = Counting(), dict(BACKENDS)
    # First, so that "auto" tries it first.
    BACKENDS.clear()
    BACKENDS.update(counting=stand_in, **before)
    yield stand_in
    BACKENDS.clear()
    BACKENDS.update(before)


def run_link_mix(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return pm.link_mix(torch.ones(1, 4, 1, dtype=dtype), torch.ones(1, 4, 2, dtype=dtype), [1])


def test_backends_report_what_is_available_and_why_not():
    states = pm.backends()
    assert states["reference"].available
    assert str(states["reference"]) == "available"
    assert set(states) == {"reference", "cpu", "triton"}
    for availability in states.values():
        assert bool(availability) != bool(availability.reason)


def test_auto_selects_the_first_backend_that_can_serve(counter):
    run_link_mix()
    assert counter.calls == 1
    run_link_mix(torch.float64)
    assert counter.calls == 1
    with pm.backend("reference"):
        assert run_link_mix().eq(1).all()
    assert counter.calls == 1


def test_a_backend_requested_by_name_that_cannot_serve_raises(counter):
    with pm.backend("counting"), pytest.raises(RuntimeError, match="'counting' cannot serve.*float32 only"):
        run_link_mix(torch.float64)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_triton_says_whether_the_package_or_the_gpu_is_missing(monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    for found, reason in ((None, r"the package triton is missing.*paramixer\[gpu\]"), (object(), "torch finds no GPU")):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name, found=found: found)
        assert re.search(reason, pm.backends()["triton"].reason)
        with pm.backend("triton"), pytest.raises(RuntimeError, match=f"'triton' cannot serve this call: .*{reason}"):
            run_link_mix()


def test_compiled_graphs_obey_the_backend(counter):
    compiled = torch.compile(run_link_mix, fullgraph=True, backend="aot_eager")
    compiled()
    assert counter.calls == 1
    with pm.backend("reference"):
        assert compiled().eq(1).all()
    assert counter.calls == 1


def test_environment_variable_does_the_same_and_yields_to_the_context(counter, monkeypatch):
    monkeypatch.setenv("PARAMIXER_BACKEND", "reference")
    run_link_mix()
    assert counter.calls == 0
    with pm.backend("auto"):
        run_link_mix()
    assert counter.calls == 1
    monkeypatch.setenv("PARAMIXER_BACKEND", "fast")
    with pytest.raises(ValueError, match="PARAMIXER_BACKEND: there is no backend 'fast'; choose from auto"):
        run_link_mix()


def test_a_wrong_name_is_refused_at_once():
    with pytest.raises(ValueError, match="no backend 'nonsense'"):
        pm.backend("nonsense")


def test_contexts_may_end_in_any_order(counter):
    first, second = pm.backend("reference"), pm.backend("counting")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    run_link_mix()
    assert counter.calls == 1
    second.__exit__(None, None, None)
    with pm.backend("reference"):
        run_link_mix()
    assert counter.calls == 1


def test_contexts_nest_and_end(counter):
    with pm.backend("reference"):
        with pm.backend("counting"):
            run_link_mix()
        run_link_mix()
    assert counter.calls == 1
    with pytest.raises(ValueError, match="no backend 'gpu'"), pm.backend("gpu"):
        pass
    run_link_mix()
    assert counter.calls == 2
