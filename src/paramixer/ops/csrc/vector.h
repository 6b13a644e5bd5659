// Vectors of Width floats on the vector extensions of GCC and clang: one source for every instruction set.
#pragma once

#include <cstdint>

#define PARAMIXER_INLINE inline __attribute__((always_inline))
// Loops over registers must unroll, or the accumulators live in memory.
#if defined(__clang__)
#define PARAMIXER_UNROLL _Pragma("unroll")
#else
#define PARAMIXER_UNROLL _Pragma("GCC unroll 16")
#endif
// __builtin_shufflevector came with GCC 12; older ones take the lanes as a vector.
#if defined(__clang__) || __GNUC__ >= 12
#define PARAMIXER_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PARAMIXER_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, Ints<Width>{__VA_ARGS__})
#endif

namespace paramixer {
namespace PARAMIXER_SET {

template <int Width>
struct Lanes {
    typedef float Floats __attribute__((vector_size(Width * 4)));
    typedef int32_t Ints __attribute__((vector_size(Width * 4)));
    typedef uint32_t Words __attribute__((vector_size(Width * 4)));
    // Loads and stores use a type with float's alignment; memcpy would defeat store forwarding.
    typedef float Loose __attribute__((vector_size(Width * 4), aligned(4), may_alias));
};

template <int Width>
using Floats = typename Lanes<Width>::Floats;
template <int Width>
using Ints = typename Lanes<Width>::Ints;
template <int Width>
using Words = typename Lanes<Width>::Words;

template <int Width>
PARAMIXER_INLINE Floats<Width> load(const float* from) {
    return *reinterpret_cast<const typename Lanes<Width>::Loose*>(from);
}

template <int Width>
PARAMIXER_INLINE void store(float* to, Floats<Width> value) {
    *reinterpret_cast<typename Lanes<Width>::Loose*>(to) = value;
}

template <int Width>
PARAMIXER_INLINE Floats<Width> load_part(const float* from, int64_t count) {
    Floats<Width> value = {};
    for (int64_t lane = 0; lane < count; ++lane) value[lane] = from[lane];
    return value;
}

template <int Width>
PARAMIXER_INLINE void store_part(float* to, Floats<Width> value, int64_t count) {
    for (int64_t lane = 0; lane < count; ++lane) to[lane] = value[lane];
}

// At most Width floats, `left` of which exist.
template <int Width>
PARAMIXER_INLINE Floats<Width> load_up_to(const float* from, int64_t left) {
    return left >= Width ? load<Width>(from) : load_part<Width>(from, left);
}

template <int Width>
PARAMIXER_INLINE void store_up_to(float* to, Floats<Width> value, int64_t left) {
    if (left >= Width)
        store<Width>(to, value);
    else
        store_part<Width>(to, value, left);
}

template <int Width>
PARAMIXER_INLINE Ints<Width> lane_numbers() {
    Ints<Width> lanes;
    PARAMIXER_UNROLL
    for (int lane = 0; lane < Width; ++lane) lanes[lane] = lane;
    return lanes;
}

// The linker merges std:: functions of all translation units by name, so the kernels use none.
PARAMIXER_INLINE constexpr int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
PARAMIXER_INLINE constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <int... Values>
struct Indices {};
template <int Count, int... Values>
struct MakeIndices : MakeIndices<Count - 1, Count - 1, Values...> {};
template <int... Values>
struct MakeIndices<0, Values...> {
    typedef Indices<Values...> type;
};

// In every span, the even (parity 0) or odd blocks of the first vector, then those of the second.
constexpr int every_other(int position, int width, int block, int span, int parity) {
    const int half = span / block / 2, number = position % span / block;
    return position / span * span + (2 * (number % half) + parity) * block + position % block +
           (number < half ? 0 : width);
}

template <int Width, int Block, int Span, int... I>
PARAMIXER_INLINE Floats<Width> add_neighbors(Floats<Width> a, Floats<Width> b, Indices<I...>) {
    return PARAMIXER_SHUFFLE(a, b, every_other(I, Width, Block, Span, 0)...) +
           PARAMIXER_SHUFFLE(a, b, every_other(I, Width, Block, Span, 1)...);
}

// Lane i of the result is the sum over the lanes of vectors[i]. Single lanes are folded inside groups of four before
// whole groups are, since crossing 128 bits is slow.
template <int Width>
PARAMIXER_INLINE Floats<Width> sum_each(Floats<Width> (&vectors)[Width]) {
    if constexpr (Width > 1) {
        constexpr int group = Width < 4 ? Width : 4;
        int left = Width;
        PARAMIXER_UNROLL
        for (int lanes = group; lanes > 1; lanes /= 2) {
            left /= 2;
            PARAMIXER_UNROLL
            for (int i = 0; i < left; ++i)
                vectors[i] = add_neighbors<Width, 1, group>(vectors[2 * i], vectors[2 * i + 1],
                                                            typename MakeIndices<Width>::type());
        }
        if constexpr (Width > 4) {
            PARAMIXER_UNROLL
            for (int groups = Width / 4; groups > 1; groups /= 2) {
                left /= 2;
                PARAMIXER_UNROLL
                for (int i = 0; i < left; ++i)
                    vectors[i] = add_neighbors<Width, 4, Width>(vectors[2 * i], vectors[2 * i + 1],
                                                                typename MakeIndices<Width>::type());
            }
        }
    }
    return vectors[0];
}

template <int Width, int Half, int... I>
PARAMIXER_INLINE Floats<Width> interleave(Floats<Width> a, Floats<Width> b, Indices<I...>) {
    return PARAMIXER_SHUFFLE(a, b, (Half * Width / 2 + I / 2 + (I % 2) * Width)...);
}

// The square block of rows in `vectors` becomes its transpose: log2(Width) perfect shuffles.
template <int Width>
PARAMIXER_INLINE void transpose(Floats<Width> (&vectors)[Width]) {
    PARAMIXER_UNROLL
    for (int round = 1; round < Width; round *= 2) {
        Floats<Width> next[Width];
        PARAMIXER_UNROLL
        for (int i = 0; i < Width / 2; ++i) {
            next[2 * i] = interleave<Width, 0>(vectors[i], vectors[i + Width / 2], typename MakeIndices<Width>::type());
            next[2 * i + 1] =
                interleave<Width, 1>(vectors[i], vectors[i + Width / 2], typename MakeIndices<Width>::type());
        }
        PARAMIXER_UNROLL
        for (int i = 0; i < Width; ++i) vectors[i] = next[i];
    }
}

}  // namespace PARAMIXER_SET
}  // namespace paramixer
