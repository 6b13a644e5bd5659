// The link gathers. For consecutive tokens a link's sources are consecutive rows, so a tile is cut only where a link
// wraps around (or leaves) the sequence; inside such a piece every link is a straight run of rows.
#pragma once

#include "kernels.h"
#include "vector.h"

namespace paramixer {
namespace PARAMIXER_SET {

// On a ring, in 0 .. length; else clamped to what is certainly outside, so that adding positions cannot overflow.
PARAMIXER_INLINE int64_t shift_of(int64_t offset, int64_t length, bool ring, bool adjoint) {
    if (ring) {
        if (offset >= length || offset < -length) offset %= length;
        if (adjoint) offset = -offset;
        return offset < 0 ? offset + length : offset == length ? 0 : offset;
    }
    offset = offset > length ? length : offset < -length ? -length : offset;
    return adjoint ? -offset : offset;
}

// Fills `runs` with the links that are inside the sequence from token `from` of the tile on, and says up to which
// token that holds. An adjoint run reads the weights at its source, the other at the tile's own tokens.
inline int64_t cut_piece(const Tile& tile, const Links& links, bool adjoint, int64_t from, const WeightView& weights,
                         const float* values, int64_t channels, Run* runs, int64_t& active) {
    int64_t to = tile.count;
    active = 0;
    for (int64_t k = 0; k < links.count; ++k) {
        int64_t row = tile.start + from + shift_of(links.offsets[k], tile.length, links.ring, adjoint);
        if (links.ring && row >= tile.length) row -= tile.length;
        if (row < 0) {
            to = least(to, from - row);
        } else if (row < tile.length) {
            to = least(to, from + tile.length - row);
            const int64_t weight_token = adjoint ? row : from;
            runs[active++] = {values + row * channels,
                              weights.data + weight_token * weights.token_step + k * weights.link_step, k};
        }
    }
    return to;
}

// `residual` and `out` begin at the piece, as the runs do; `at` is the block's first element there.
template <int Width, int Tokens, int Vectors>
PARAMIXER_INLINE void mix_block(const Run* runs, int64_t active, int64_t weight_step, int64_t channels, int64_t token,
                                int64_t channel, const float* residual, float* out) {
    const int64_t at = token * channels + channel;
    Floats<Width> sums[Tokens][Vectors];
    PARAMIXER_UNROLL
    for (int t = 0; t < Tokens; ++t) {
        PARAMIXER_UNROLL
        for (int v = 0; v < Vectors; ++v)
            sums[t][v] = residual ? load<Width>(residual + at + t * channels + v * Width) : Floats<Width>{};
    }
    for (int64_t k = 0; k < active; ++k) {
        const float* rows = runs[k].rows + at;
        const float* weights = runs[k].weights + token * weight_step;
        // Opaque, so that the compiler addresses from them instead of spilling a sum for every vector.
        asm("" : "+r"(rows), "+r"(weights));
        PARAMIXER_UNROLL
        for (int t = 0; t < Tokens; ++t) {
            const float weight = weights[t * weight_step];
            PARAMIXER_UNROLL
            for (int v = 0; v < Vectors; ++v) sums[t][v] += weight * load<Width>(rows + t * channels + v * Width);
        }
    }
    PARAMIXER_UNROLL
    for (int t = 0; t < Tokens; ++t) {
        PARAMIXER_UNROLL
        for (int v = 0; v < Vectors; ++v) store<Width>(out + at + t * channels + v * Width, sums[t][v]);
    }
}

// Whole: the vectors are the row, whose width then is known when this is compiled.
template <int Width, int Vectors, bool Whole>
inline void mix_columns(const Run* runs, int64_t active, int64_t weight_step, int64_t row, int64_t tokens,
                        int64_t channel, const float* residual, float* out) {
    constexpr int together = 12 / Vectors;
    const int64_t channels = Whole ? Vectors * Width : row;
    int64_t t = 0;
    for (; t + together <= tokens; t += together)
        mix_block<Width, together, Vectors>(runs, active, weight_step, channels, t, channel, residual, out);
    for (; t < tokens; ++t)
        mix_block<Width, 1, Vectors>(runs, active, weight_step, channels, t, channel, residual, out);
}

// Needs channels >= Width: the last block is shifted back to end with the row, and repeats a few channels of the block
// before it; so there must be one before it, unless the vectors fit.
template <int Width>
inline void mix_piece(const Run* runs, int64_t active, int64_t weight_step, int64_t channels, int64_t tokens,
                      const float* residual, float* out) {
    if (channels == 4 * Width)
        return mix_columns<Width, 4, true>(runs, active, weight_step, channels, tokens, 0, residual, out);
    const int64_t vectors = divide_up(channels, Width);
    const int64_t blocks = vectors <= 4 && channels % Width != 0 ? 2 : divide_up(vectors, 4);
    for (int64_t block = 0, v = 0; block < blocks; ++block) {
        const int64_t next = (block + 1) * vectors / blocks;
        const int64_t channel = least(v * Width, channels - (next - v) * Width);
        switch (next - v) {
            case 1: mix_columns<Width, 1, false>(runs, active, weight_step, channels, tokens, channel, residual, out); break;
            case 2: mix_columns<Width, 2, false>(runs, active, weight_step, channels, tokens, channel, residual, out); break;
            case 3: mix_columns<Width, 3, false>(runs, active, weight_step, channels, tokens, channel, residual, out); break;
            default: mix_columns<Width, 4, false>(runs, active, weight_step, channels, tokens, channel, residual, out);
        }
        v = next;
    }
}

// Rows narrower than a vector are served by a narrower vector.
template <int Width>
inline void mix_tile(const Tile& tile, const Links& links, bool adjoint, const WeightView& weights, const float* values,
                     int64_t channels, const float* residual, float* out, Run* runs) {
    if constexpr (Width > 1) {
        if (channels < Width)
            return mix_tile<Width / 2>(tile, links, adjoint, weights, values, channels, residual, out, runs);
    }
    int64_t active;
    for (int64_t from = 0, to; from < tile.count; from = to) {
        to = cut_piece(tile, links, adjoint, from, weights, values, channels, runs, active);
        // A whole sequence's weights are as many streams again as the rows, more than the hardware follows.
        if (adjoint && weights.token_step == 1)
            for (int64_t k = 0; k < active; ++k)
                for (int64_t t = 0; t < to - from; t += 16) __builtin_prefetch(runs[k].weights + t);
        mix_piece<Width>(runs, active, weights.token_step, channels, to - from,
                         residual ? residual + from * channels : nullptr, out + from * channels);
    }
}

// Dot products of Width / Together tokens' gradients with their sources over Together links, Width sums at once.
// `count` links and `tokens` tokens are real; the rest repeat the last one and are not stored, unless as the padding
// of a row that has all its links (`all`).
template <int Width, int Together>
PARAMIXER_INLINE void dot_block(const Run* runs, int64_t count, bool all, int64_t token, int64_t tokens,
                                const float* grad, int64_t channels, float* dweights, int64_t step) {
    constexpr int Tokens = Width / Together;
    const float* rows[Together];
    PARAMIXER_UNROLL
    for (int k = 0; k < Together; ++k) rows[k] = runs[least(k, count - 1)].rows + token * channels;
    grad += token * channels;
    int64_t at[Tokens];
    PARAMIXER_UNROLL
    for (int t = 0; t < Tokens; ++t) at[t] = least(t, tokens - 1) * channels;

    Floats<Width> sums[Width] = {};
    int64_t c = 0;
    for (; c + Width <= channels; c += Width) {
        PARAMIXER_UNROLL
        for (int t = 0; t < Tokens; ++t) {
            const Floats<Width> own = load<Width>(grad + at[t] + c);
            PARAMIXER_UNROLL
            for (int k = 0; k < Together; ++k) sums[t * Together + k] += own * load<Width>(rows[k] + at[t] + c);
        }
    }
    if (c < channels) {
        // The last vector ends with the row; its lanes that were counted already are blanked on both sides, for
        // zero times infinity would not be zero.
        const Ints<Width> fresh = lane_numbers<Width>() >= static_cast<int32_t>(Width - (channels - c));
        c = channels - Width;
        PARAMIXER_UNROLL
        for (int t = 0; t < Tokens; ++t) {
            const Floats<Width> own = fresh ? load<Width>(grad + at[t] + c) : Floats<Width>{};
            PARAMIXER_UNROLL
            for (int k = 0; k < Together; ++k)
                sums[t * Together + k] += own * (fresh ? load<Width>(rows[k] + at[t] + c) : Floats<Width>{});
        }
    }

    const Floats<Width> dots = sum_each<Width>(sums);
    float* to = dweights + token * step;
    if (Together == Width && all && runs[0].link + Width <= step) {
        store<Width>(to + runs[0].link, dots);
    } else {
        float parts[Width];
        store<Width>(parts, dots);
        for (int64_t t = 0; t < least(Tokens, tokens); ++t)
            for (int64_t k = 0; k < least(Together, count); ++k) to[t * step + runs[k].link] = parts[t * Together + k];
    }
}

template <int Width, int Together>
inline void dot_links(const Run* runs, int64_t count, bool all, int64_t tokens, const float* grad, int64_t channels,
                      float* dweights, int64_t step) {
    for (int64_t t = 0; t < tokens; t += Width / Together)
        dot_block<Width, Together>(runs, count, all, t, tokens - t, grad, channels, dweights, step);
}

template <int Width>
inline void dot_tile(const Tile& tile, const Links& links, const float* grad, const float* values, int64_t channels,
                     float* dweights, int64_t step, Run* runs) {
    if constexpr (Width > 1) {
        if (channels < Width)
            return dot_tile<Width / 2>(tile, links, grad, values, channels, dweights, step, runs);
    }
    int64_t active;
    for (int64_t from = 0, to; from < tile.count; from = to) {
        to = cut_piece(tile, links, false, from, {}, values, channels, runs, active);
        const int64_t tokens = to - from;
        const bool all = active == links.count;
        if (!all)
            for (int64_t t = from; t < to; ++t)
                for (int64_t k = 0; k < links.count; ++k) dweights[t * step + k] = 0.0f;
        for (int64_t k = 0; k < active; k += Width) {
            const int64_t count = least(Width, active - k);
            const float* own = grad + from * channels;
            float* target = dweights + from * step;
            if constexpr (Width >= 8) {
                if (4 * count <= Width) {
                    dot_links<Width, Width / 4>(runs + k, count, all, tokens, own, channels, target, step);
                    continue;
                }
            }
            if constexpr (Width >= 2) {
                if (2 * count <= Width) {
                    dot_links<Width, Width / 2>(runs + k, count, all, tokens, own, channels, target, step);
                    continue;
                }
            }
            dot_links<Width, Width>(runs + k, count, all, tokens, own, channels, target, step);
        }
    }
}

}  // namespace PARAMIXER_SET
}  // namespace paramixer
