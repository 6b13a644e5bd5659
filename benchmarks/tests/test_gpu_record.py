"""The record of the compiled kernels: every shape that is used, no spills, two blocks on a multiprocessor."""

from __future__ import annotations

import pytest

import paramixer as pm
from benchmarks.gpu_kernels import ALONE, NUMBERS, SHAPES
from benchmarks.memory import ROOT
from benchmarks.record import read_record
from paramixer.nn.layer import ParamixerLayer
from paramixer.recipes import PRESETS

CHAIN = {"factor_forward", "link_backward", "mix_stored", "mlp_backward"}
WIDE = {"input_backward", "first_layer_backward"}


@pytest.fixture(scope="module")
def kernels():
    return read_record(ROOT / "results/bench/gpu-kernels.json").measured["kernels"]


def test_every_kernel_was_compiled_for_every_shape(kernels):
    compiled = {(one["shape"], one["numbers"], one["kernel"], one["device"]) for one in kernels}
    expected = {
        (shape, numbers, kernel)
        for shape, (inputs, *_) in SHAPES.items()
        for numbers, *_ in NUMBERS
        for kernel in (CHAIN | WIDE if inputs > 32 else CHAIN)
    }
    expected |= {
        (ALONE, numbers, kernel)
        for numbers in ("float32", "bfloat16")
        for kernel in ("mix_stored", "weight_gradients", "drop")
    }
    assert compiled == {(*one, device) for one in expected for device in ("sm_80", "sm_90", "gfx942")}


def test_no_kernel_spills_and_all_fit_twice(kernels):
    assert not [one for one in kernels if one["local"] or one["spills"] or one["blocks"] < 2]


@pytest.mark.parametrize("name", PRESETS)
def test_the_widths_of_every_preset_were_compiled(name):
    config = pm.preset(name)
    compiled = {(hidden, channels) for _, hidden, channels, _, heads in SHAPES.values() if heads is None}
    assert (config.hidden, config.channels) in compiled
    # The last power of two that is compiled.
    assert config.link_pattern().offsets(config.length).shape[1] <= 16


def test_the_widths_of_the_default_network_were_compiled():
    layer = ParamixerLayer(length=1000, width=64)
    assert (*layer.w1.shape[2:], 16, layer.w2.shape[3], layer.w1.shape[0]) in SHAPES.values()
