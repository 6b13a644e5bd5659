// The link gathers. For consecutive tokens a link's sources are consecutive rows, so a tile is cut only where a link
// wraps around (or leaves) the sequence; inside such a piece every link is a straight run of rows.
#pragma once

#include "kernels.h"
#include "vector.h"

namespace paramixer {
namespace PARAMIXER_SET {

// Forward: token t reads row t + offset. Adjoint: row t - offset.
enum class Direction { forward, adjoint };

// On a ring, in 0 .. length; else clamped to what is certainly outside, so that adding positions cannot overflow.
PARAMIXER_INLINE int64_t shift_of(int64_t offset, int64_t length, bool ring, Direction direction) {
    const bool adjoint = direction == Direction::adjoint;
    if (ring) {
        if (offset >= length || offset < -length) offset %= length;
        if (adjoint) offset = -offset;
        return offset < 0 ? offset + length : offset == length ? 0 : offset;
    }
    offset = offset > length ? length : offset < -length ? -length : offset;
    return adjoint ? -offset : offset;
}

// A range of a tile's tokens over which `active` links stay inside the sequence.
struct Piece {
    int64_t from, to;
    int64_t active;
};

// Fills gather.runs with the links that are inside the sequence from token `from` of the tile on, and returns the piece
// for which that holds. A forward run reads the weights at the tile's tokens, an adjoint run at its source rows.
inline Piece cut_piece(const Gather& gather, Direction direction, int64_t from, const WeightView& weights) {
    const Tile& tile = gather.tile;
    const Links& links = gather.links;
    Piece piece = {from, tile.count, 0};
    for (int64_t k = 0; k < links.count; ++k) {
        int64_t row = tile.start + from + shift_of(links.offsets[k], tile.length, links.ring, direction);
        if (links.ring && row >= tile.length) row -= tile.length;
        if (row < 0) {
            piece.to = least(piece.to, from - row);
        } else if (row < tile.length) {
            piece.to = least(piece.to, from + tile.length - row);
            const int64_t token = direction == Direction::adjoint ? row : from;
            gather.runs[piece.active++] = {gather.values + row * gather.ld,
                                           weights.data + token * weights.token_stride + k * weights.link_stride, k};
        }
    }
    return piece;
}

// The mix of one piece; `residual` (may be null) and `out` begin at the piece, as the runs do.
struct PieceMix {
    const Run* runs;
    int64_t active, weight_stride, channels, ld, tokens;
    const float* residual;
    float* out;
};

template <int Width, int Tokens, int Vectors>
PARAMIXER_INLINE void mix_block(PieceMix mix, int64_t ld, int64_t token, int64_t channel) {
    const int64_t at = token * ld + channel;
    Floats<Width> sums[Tokens][Vectors];
    PARAMIXER_UNROLL
    for (int t = 0; t < Tokens; ++t) {
        PARAMIXER_UNROLL
        for (int v = 0; v < Vectors; ++v)
            sums[t][v] = mix.residual ? load<Width>(mix.residual + at + t * ld + v * Width) : Floats<Width>{};
    }
    for (int64_t k = 0; k < mix.active; ++k) {
        const float* rows = mix.runs[k].rows + at;
        const float* weights = mix.runs[k].weights + token * mix.weight_stride;
        // Opaque, so that the compiler addresses from these instead of spilling an address for every vector.
        asm("" : "+r"(rows), "+r"(weights));
        PARAMIXER_UNROLL
        for (int t = 0; t < Tokens; ++t) {
            const float weight = weights[t * mix.weight_stride];
            PARAMIXER_UNROLL
            for (int v = 0; v < Vectors; ++v) sums[t][v] += weight * load<Width>(rows + t * ld + v * Width);
        }
    }
    PARAMIXER_UNROLL
    for (int t = 0; t < Tokens; ++t) {
        PARAMIXER_UNROLL
        for (int v = 0; v < Vectors; ++v) store<Width>(mix.out + at + t * ld + v * Width, sums[t][v]);
    }
}

// Whole: the vectors are the row, whose width is then known at compile time.
template <int Width, int Vectors, bool Whole>
inline void mix_columns(PieceMix mix, int64_t channel) {
    constexpr int together = 12 / Vectors;
    const int64_t ld = Whole ? Vectors * Width : mix.ld;
    int64_t t = 0;
    for (; t + together <= mix.tokens; t += together) mix_block<Width, together, Vectors>(mix, ld, t, channel);
    for (; t < mix.tokens; ++t) mix_block<Width, 1, Vectors>(mix, ld, t, channel);
}

// Needs channels >= Width: the last block is shifted back to end with the row, and repeats a few channels of the block
// before it; so there must be one before it, unless the vectors fit.
template <int Width>
inline void mix_piece(PieceMix mix) {
    const int64_t channels = mix.channels;
    if (channels == 4 * Width && mix.ld == channels) return mix_columns<Width, 4, true>(mix, 0);
    const int64_t vectors = divide_up(channels, Width);
    const int64_t blocks = vectors <= 4 && channels % Width != 0 ? 2 : divide_up(vectors, 4);
    for (int64_t block = 0, v = 0; block < blocks; ++block) {
        const int64_t next = (block + 1) * vectors / blocks;
        const int64_t channel = least(v * Width, channels - (next - v) * Width);
        switch (next - v) {
            case 1: mix_columns<Width, 1, false>(mix, channel); break;
            case 2: mix_columns<Width, 2, false>(mix, channel); break;
            case 3: mix_columns<Width, 3, false>(mix, channel); break;
            default: mix_columns<Width, 4, false>(mix, channel);
        }
        v = next;
    }
}

// Rows narrower than a vector use a narrower vector.
template <int Width, Direction direction>
inline void mix_tile(const Gather& gather, const WeightView& weights, const float* residual, float* out) {
    const int64_t channels = gather.channels;
    if constexpr (Width > 1) {
        if (channels < Width) return mix_tile<Width / 2, direction>(gather, weights, residual, out);
    }
    for (int64_t from = 0; from < gather.tile.count;) {
        const Piece piece = cut_piece(gather, direction, from, weights);
        const int64_t tokens = piece.to - from;
        // The weights of a whole sequence add as many streams as the rows have, more than the hardware prefetches.
        if (direction == Direction::adjoint && weights.token_stride == 1)
            for (int64_t k = 0; k < piece.active; ++k)
                for (int64_t t = 0; t < tokens; t += 16) __builtin_prefetch(gather.runs[k].weights + t);
        mix_piece<Width>({gather.runs, piece.active, weights.token_stride, channels, gather.ld, tokens,
                          residual ? residual + from * gather.ld : nullptr, out + from * gather.ld});
        from = piece.to;
    }
}

// Dot products of one piece: of the tokens' gradients with the source rows of `count` links, the first at `runs`.
// `complete`: the piece has all links of the factor, so that padding after the last link, up to `padded`, may be
// overwritten.
struct PieceDot {
    const Run* runs;
    int64_t count, tokens, channels, ld, padded;
    bool complete;
    const float* grad;
    Matrix dweights;
};

// Width / Together tokens times Together links, Width sums at once. Missing tokens and links repeat the last one and
// are not stored, except in the padding of a complete row.
template <int Width, int Together>
PARAMIXER_INLINE void dot_block(PieceDot dot, int64_t token) {
    constexpr int Tokens = Width / Together;
    const int64_t channels = dot.channels, ld = dot.ld, tokens = dot.tokens - token;
    const float* rows[Together];
    PARAMIXER_UNROLL
    for (int k = 0; k < Together; ++k) rows[k] = dot.runs[least(k, dot.count - 1)].rows + token * ld;
    const float* const grad = dot.grad + token * ld;
    int64_t at[Tokens];
    PARAMIXER_UNROLL
    for (int t = 0; t < Tokens; ++t) at[t] = least(t, tokens - 1) * ld;

    Floats<Width> sums[Width] = {};
    int64_t c = 0;
    for (; c + Width <= channels; c += Width) {
        PARAMIXER_UNROLL
        for (int t = 0; t < Tokens; ++t) {
            const Floats<Width> upstream = load<Width>(grad + at[t] + c);
            PARAMIXER_UNROLL
            for (int k = 0; k < Together; ++k) sums[t * Together + k] += upstream * load<Width>(rows[k] + at[t] + c);
        }
    }
    if (c < channels) {
        // The last vector ends with the row. Its lanes that were already counted are zeroed on both sides, since zero
        // times infinity is not zero.
        const Ints<Width> fresh = lane_numbers<Width>() >= static_cast<int32_t>(Width - (channels - c));
        c = channels - Width;
        PARAMIXER_UNROLL
        for (int t = 0; t < Tokens; ++t) {
            const Floats<Width> upstream = fresh ? load<Width>(grad + at[t] + c) : Floats<Width>{};
            PARAMIXER_UNROLL
            for (int k = 0; k < Together; ++k)
                sums[t * Together + k] += upstream * (fresh ? load<Width>(rows[k] + at[t] + c) : Floats<Width>{});
        }
    }

    const Floats<Width> dots = sum_each<Width>(sums);
    const int64_t to_ld = dot.dweights.ld;
    float* const to = dot.dweights.data + token * to_ld;
    if (Together == Width && dot.complete && dot.runs[0].link + Width <= dot.padded) {
        store<Width>(to + dot.runs[0].link, dots);
    } else {
        float parts[Width];
        store<Width>(parts, dots);
        for (int64_t t = 0; t < least(Tokens, tokens); ++t)
            for (int64_t k = 0; k < least(Together, dot.count); ++k)
                to[t * to_ld + dot.runs[k].link] = parts[t * Together + k];
    }
}

template <int Width, int Together>
inline void dot_links(PieceDot dot) {
    for (int64_t t = 0; t < dot.tokens; t += Width / Together) dot_block<Width, Together>(dot, t);
}

template <int Width>
inline void dot_tile(const Gather& gather, const float* grad, Matrix dweights, int64_t padded) {
    const int64_t channels = gather.channels, links = gather.links.count;
    if constexpr (Width > 1) {
        if (channels < Width) return dot_tile<Width / 2>(gather, grad, dweights, padded);
    }
    for (int64_t from = 0; from < gather.tile.count;) {
        const Piece piece = cut_piece(gather, Direction::forward, from, {});
        const bool complete = piece.active == links;
        if (!complete)
            for (int64_t t = from; t < piece.to; ++t)
                for (int64_t k = 0; k < links; ++k) dweights.data[t * dweights.ld + k] = 0.0f;
        for (int64_t k = 0; k < piece.active; k += Width) {
            const int64_t count = least(Width, piece.active - k);
            const PieceDot dot = {gather.runs + k,
                                  count,
                                  piece.to - from,
                                  channels,
                                  gather.ld,
                                  padded,
                                  complete,
                                  grad + from * gather.ld,
                                  {dweights.data + from * dweights.ld, dweights.ld}};
            if constexpr (Width >= 8) {
                if (4 * count <= Width) {
                    dot_links<Width, Width / 4>(dot);
                    continue;
                }
            }
            if constexpr (Width >= 2) {
                if (2 * count <= Width) {
                    dot_links<Width, Width / 2>(dot);
                    continue;
                }
            }
            dot_links<Width, Width>(dot);
        }
        from = piece.to;
    }
}

}  // namespace PARAMIXER_SET
}  // namespace paramixer
