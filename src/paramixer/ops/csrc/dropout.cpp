#include <algorithm>
#include <cmath>

#include "engine.h"
#include "kernels.h"

namespace paramixer {
namespace {

// Spreads a seed over all bits of the result; consecutive seeds become unrelated (Steele, Lea & Flood's SplitMix).
uint64_t spread(uint64_t seed) {
    seed += 0x9E3779B97F4A7C15u;
    seed = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9u;
    seed = (seed ^ (seed >> 27)) * 0x94D049BB133111EBu;
    return seed ^ (seed >> 31);
}

}  // namespace

void dropout(int64_t count, const float* values, double p, uint64_t seed, float* out) {
    const Kernels& kernel = kernels();
    // p = 1 has no threshold in 32 bits; it is a scale of 0.
    const double limit = std::nearbyint(p * 4294967296.0);
    const uint32_t threshold = static_cast<uint32_t>(std::min(limit, 4294967295.0));
    const float scale = p < 1.0 ? static_cast<float>(1.0 / (1.0 - p)) : 0.0f;
    constexpr int64_t block = 1 << 14;  // divides 2^32, so that a block has one set of keys
#pragma omp parallel for schedule(static)
    for (int64_t first = 0; first < count; first += block) {
        const uint64_t high = spread(spread(seed) ^ static_cast<uint64_t>(first >> 32)), low = spread(high);
        const DropoutMask mask = {
            {static_cast<uint32_t>(high), static_cast<uint32_t>(high >> 32), static_cast<uint32_t>(low)},
            threshold,
            scale};
        kernel.dropout(mask, first, std::min(block, count - first), values + first, out + first);
    }
}

}  // namespace paramixer
