// The exact GELU, x Phi(x), and its derivative, Phi(x) + x phi(x). Coefficients: tools/fit_gelu.py.
#pragma once

#include "vector.h"

namespace paramixer {
namespace PARAMIXER_SET {

// Integer operations on the bits instead of comparing and blending floats, which would take slots from the
// multiply-adds.
template <int Width>
PARAMIXER_INLINE Floats<Width> absolute(Floats<Width> x) {
    return reinterpret_cast<Floats<Width>>(reinterpret_cast<Words<Width>>(x) & 0x7fffffffu);
}

template <int Width>
PARAMIXER_INLINE Floats<Width> with_sign_of(Floats<Width> magnitude, Floats<Width> x) {
    return reinterpret_cast<Floats<Width>>(reinterpret_cast<Words<Width>>(magnitude) ^
                                           (reinterpret_cast<Words<Width>>(x) & 0x80000000u));
}

// The smaller magnitude of two floats of one sign. A NaN counts as large.
template <int Width>
PARAMIXER_INLINE Floats<Width> nearer_zero(Floats<Width> a, float b) {
    const Words<Width> bits = reinterpret_cast<Words<Width>>(a),
                       limit = reinterpret_cast<Words<Width>>(Floats<Width>{} + b);
    return reinterpret_cast<Floats<Width>>(bits < limit ? bits : limit);
}

// The functions below compute Count vectors side by side: the multiply-adds of one vector depend on each other, and the
// processor's window is too short to overlap enough vectors by itself.

// The forward pass alone: the ramp max(x, 0) less |x| Phi(-|x|), where Phi(-|x|) = 1 / polynomial(|x|)^8 has no
// exponential in it, and the product vanishes in float32 beyond `bound`. Divisions have a unit of their own.
template <int Width, int Count>
PARAMIXER_INLINE void gelu(float* values) {
    constexpr float bound = 5.6f;
    constexpr float polynomial[] = {3.51781478e-07f, -1.86599512e-06f, 1.16642964e-05f, 1.22675433e-05f,
                                    0.000292290826f, 0.000888350888f,  0.00947701407f,  0.0488102625f,
                                    0.108762677f,    1.09050773f};
    Floats<Width> size[Count], power[Count];
    PARAMIXER_UNROLL
    for (int i = 0; i < Count; ++i) {
        size[i] = nearer_zero<Width>(absolute<Width>(load<Width>(values + i * Width)), bound);
        power[i] = size[i] * polynomial[0] + polynomial[1];
    }
    PARAMIXER_UNROLL
    for (int k = 2; k < 10; ++k) {
        PARAMIXER_UNROLL
        for (int i = 0; i < Count; ++i) power[i] = power[i] * size[i] + polynomial[k];
    }
    PARAMIXER_UNROLL
    for (int k = 0; k < 3; ++k) {
        PARAMIXER_UNROLL
        for (int i = 0; i < Count; ++i) power[i] *= power[i];
    }
    PARAMIXER_UNROLL
    for (int i = 0; i < Count; ++i) {
        // The ramp as x / 2 + |x| / 2: minus infinity gives the NaN that PyTorch has.
        const Floats<Width> x = 0.5f * load<Width>(values + i * Width);
        store<Width>(values + i * Width, (x + absolute<Width>(x)) - size[i] / power[i]);
    }
}

// exp(-x^2 / 2); exactly 0 once the result would be subnormal, so that infinity times it is NaN as in PyTorch.
template <int Width, int Count>
PARAMIXER_INLINE void gauss(const Floats<Width> (&x)[Count], Floats<Width> (&bell)[Count]) {
    constexpr float half_log2_e = 0.72134752044448170368f;
    // Adding 1.5 * 2^23 rounds to an integer; the 127 puts the exponent's bias into the low bits.
    constexpr float rounder = 12582912.0f + 127.0f;
    constexpr float polynomial[] = {0.00132764723f, 0.00967554176f, 0.0555071328f,
                                    0.240221197f,   0.693146967f,   1.00000007f};
    Floats<Width> rounded[Count], r[Count];
    PARAMIXER_UNROLL
    for (int i = 0; i < Count; ++i) {
        const Floats<Width> exponent = nearer_zero<Width>(x[i] * (x[i] * -half_log2_e), -127.0f);
        rounded[i] = exponent + rounder;
        r[i] = exponent - (rounded[i] - rounder);
        bell[i] = r[i] * polynomial[0] + polynomial[1];
    }
    PARAMIXER_UNROLL
    for (int k = 2; k < 6; ++k) {
        PARAMIXER_UNROLL
        for (int i = 0; i < Count; ++i) bell[i] = bell[i] * r[i] + polynomial[k];
    }
    PARAMIXER_UNROLL
    for (int i = 0; i < Count; ++i)
        bell[i] *= reinterpret_cast<Floats<Width>>(reinterpret_cast<Words<Width>>(rounded[i]) << 23);
}

// Value and derivative share one exponential: Phi(-|x|) = exp(-x^2 / 2) z polynomial(z), z = 1 / (1 + 0.275 |x|).
template <int Width, int Count>
PARAMIXER_INLINE void gelu_and_slope(float* values, float* slopes) {
    constexpr float polynomial[] = {-0.114165573f, 0.449164617f,  -0.326388728f,
                                    0.330219499f,  0.0435966569f, 0.117573539f};
    Floats<Width> x[Count], bell[Count], z[Count], tail[Count];
    PARAMIXER_UNROLL
    for (int i = 0; i < Count; ++i) x[i] = load<Width>(values + i * Width);
    gauss<Width, Count>(x, bell);
    PARAMIXER_UNROLL
    for (int i = 0; i < Count; ++i) {
        z[i] = 1.0f / (absolute<Width>(x[i]) * 0.275f + 1.0f);
        tail[i] = z[i] * polynomial[0] + polynomial[1];
    }
    PARAMIXER_UNROLL
    for (int k = 2; k < 6; ++k) {
        PARAMIXER_UNROLL
        for (int i = 0; i < Count; ++i) tail[i] = tail[i] * z[i] + polynomial[k];
    }
    PARAMIXER_UNROLL
    for (int i = 0; i < Count; ++i) {
        const Floats<Width> phi = 0.5f + with_sign_of<Width>(0.5f - tail[i] * (z[i] * bell[i]), x[i]);
        store<Width>(values + i * Width, x[i] * phi);
        store<Width>(slopes + i * Width, phi + x[i] * (0.398942280f * bell[i]));
    }
}

// In place, `count` a multiple of Width.
template <int Width>
PARAMIXER_INLINE void gelu_all(float* values, int64_t count) {
    int64_t i = 0;
    for (; i + 6 * Width <= count; i += 6 * Width) gelu<Width, 6>(values + i);
    for (; i < count; i += Width) gelu<Width, 1>(values + i);
}

template <int Width>
PARAMIXER_INLINE void gelu_and_slope_all(float* values, float* slopes, int64_t count) {
    int64_t i = 0;
    for (; i + 4 * Width <= count; i += 4 * Width) gelu_and_slope<Width, 4>(values + i, slopes + i);
    for (; i < count; i += Width) gelu_and_slope<Width, 1>(values + i, slopes + i);
}

}  // namespace PARAMIXER_SET
}  // namespace paramixer
