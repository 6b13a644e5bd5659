// Dropout masks from a hash of (keys, element): stateless, so equal for all threads and instruction sets.
#pragma once

#include "kernels.h"
#include "vector.h"

namespace paramixer {
namespace PARAMIXER_SET {

// Keyed rounds of xor-shift and odd multiplication, a bijection of the element number under any keys.
template <class Word>
PARAMIXER_INLINE Word scramble(Word word, const uint32_t* keys) {
    word = (word ^ keys[0]) * 0x9E3779B1u;
    word = (word ^ (word >> 15) ^ keys[1]) * 0x85EBCA77u;
    word = (word ^ (word >> 13) ^ keys[2]) * 0xC2B2AE3Du;
    return word ^ (word >> 16);
}

template <int Width>
void dropout_elements(const DropoutMask& mask, int64_t first, int64_t count, const float* values, float* out) {
    const uint32_t start = static_cast<uint32_t>(first);
    const uint32_t keys[3] = {mask.keys[0], mask.keys[1], mask.keys[2]}, threshold = mask.threshold;
    const float scale = mask.scale;
    const Words<Width> lanes = reinterpret_cast<Words<Width>>(lane_numbers<Width>());
    int64_t i = 0;
    for (; i + Width <= count; i += Width) {
        const Words<Width> word = scramble<Words<Width>>(lanes + (start + static_cast<uint32_t>(i)), keys);
        const Floats<Width> factor = word >= threshold ? Floats<Width>{} + scale : Floats<Width>{};
        store<Width>(out + i, load<Width>(values + i) * factor);
    }
    for (; i < count; ++i)
        out[i] = values[i] * (scramble<uint32_t>(start + static_cast<uint32_t>(i), keys) >= threshold ? scale : 0.0f);
}

}  // namespace PARAMIXER_SET
}  // namespace paramixer
