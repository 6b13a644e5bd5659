"""The Triton kernels compile for GPUs on a machine without one, and fit twice on a multiprocessor."""

from __future__ import annotations

import pytest

pytest.importorskip("triton")

from benchmarks import gpu_compile
from paramixer.ops.triton import launch


def test_blocks_are_limited_by_registers_shared_memory_and_warps():
    device = gpu_compile.DEVICES["sm_80"]
    assert device.resident_blocks(128, 0, 4) == 4
    assert device.resident_blocks(129, 0, 4) == 3
    assert device.resident_blocks(32, 81 * 1024, 4) == 2
    assert device.resident_blocks(16, 0, 8) == 8
    assert gpu_compile.DEVICES["gfx942"].resident_blocks(64, 0, 4) == 8


def test_every_kernel_of_a_chain_is_captured_and_none_is_run():
    names = [one.name for one in gpu_compile.capture_chain(16, 16, 16, 9, 4)]
    assert names == ["factor_forward", "link_backward", "mix_stored", "mlp_backward"]
    wide = [one.name for one in gpu_compile.capture_chain(40, 16, 16, 9)]
    assert wide[4:] == ["input_backward", "first_layer_backward"]
    alone = [one.name for one in gpu_compile.capture_operators(16, 9)]
    assert alone == ["mix_stored", "weight_gradients", "drop"]
    assert launch.run.__module__ == launch.__name__


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("device", gpu_compile.DEVICES)
def test_one_kernel_of_each_kind_compiles_without_spills_and_fits_twice(device):
    launches = [
        *gpu_compile.capture_chain(16, 16, 16, 9, 4),
        *gpu_compile.capture_chain(40, 16, 16, 9)[-2:],
        *gpu_compile.capture_operators(16, 9),
    ]
    assert len({one.name for one in launches}) == 8
    for one in launches:
        compiled = gpu_compile.compile_launch(one, device)
        assert compiled["local"] == compiled["spills"] == 0, compiled
        assert compiled["blocks"] >= 2, compiled
