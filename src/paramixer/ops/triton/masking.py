"""Dropout in one pass over memory: the mask is a hash of the seed and the element's number, as on every backend."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["count", "threshold", "scale", "key0", "key1", "key2"])
def drop(values, dropped, count, threshold, scale, key0, key1, key2, TILE: tl.constexpr):
    """Set elements to zero whose 32 random bits are below the threshold, scale the others."""
    element = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    inside = element < count
    word = element.to(tl.uint32) ^ key0.to(tl.uint32)
    word = word * 0x9E3779B1
    word = (word ^ (word >> 15) ^ key1.to(tl.uint32)) * 0x85EBCA77
    word = (word ^ (word >> 13) ^ key2.to(tl.uint32)) * 0xC2B2AE3D
    word = word ^ (word >> 16)
    value = tl.load(values + element, mask=inside, other=0.0).to(tl.float32)
    factor = tl.where(word.to(tl.int64) >= threshold, scale, 0.0)
    tl.store(dropped + element, (value * factor).to(dropped.dtype.element_ty), mask=inside)
