// One factor of the chain on one tile: link weights from a small MLP, then the mix; and its backward pass.
#pragma once

#include "gelu.h"
#include "gemm.h"
#include "mix.h"

namespace paramixer {
namespace PARAMIXER_SET {

template <int Width>
PARAMIXER_INLINE void first_layer(const FactorContext& factor, int64_t tokens, const float* inputs) {
    const TileShape& shape = factor.shape;
    multiply<Width, false>({inputs, shape.inputs}, packed<Width>(factor.packed.w1, shape.inputs), tokens,
                           shape.padded_hidden / Width, shape.inputs,
                           [&](int64_t token, int64_t unit, Floats<Width> sum) {
                               store<Width>(factor.work.hidden + token * shape.hidden_ld + unit,
                                            sum + load<Width>(factor.packed.b1 + unit));
                           });
}

// finish(token, link, vector) for the link weights of all tokens.
template <int Width, class Finish>
PARAMIXER_INLINE void second_layer(const FactorContext& factor, int64_t tokens, const Finish& finish) {
    const TileShape& shape = factor.shape;
    multiply<Width, false>({factor.work.hidden, shape.hidden_ld}, packed<Width>(factor.packed.w2, shape.hidden), tokens,
                           shape.padded_links / Width, shape.hidden,
                           [&](int64_t token, int64_t link, Floats<Width> sum) {
                               finish(token, link, sum + load<Width>(factor.packed.b2 + link));
                           });
}

template <int Width>
PARAMIXER_INLINE void link_weights(const FactorContext& factor, int64_t tokens) {
    second_layer<Width>(factor, tokens, [&](int64_t token, int64_t link, Floats<Width> sum) {
        store<Width>(factor.work.weights + token * factor.shape.padded_links + link, sum);
    });
}

template <int Width>
void mlp_tile(const FactorContext& factor, int64_t tokens, const float* inputs, float* out) {
    first_layer<Width>(factor, tokens, inputs);
    gelu_all<Width>(factor.work.hidden, tokens * factor.shape.hidden_ld);
    const int64_t links = factor.shape.links;
    second_layer<Width>(factor, tokens, [&](int64_t token, int64_t link, Floats<Width> sum) {
        store_up_to<Width>(out + token * links + link, sum, links - link);
    });
}

template <int Width>
void forward_tile(const FactorContext& factor, const Tile& tile, const ForwardTile& rows) {
    first_layer<Width>(factor, tile.count, rows.inputs);
    gelu_all<Width>(factor.work.hidden, tile.count * factor.shape.hidden_ld);
    link_weights<Width>(factor, tile.count);
    mix_tile<Width, Direction::forward>(
        {tile, factor.links, rows.values, factor.shape.channels, factor.shape.channels, factor.work.runs},
        {factor.work.weights, factor.shape.padded_links, 1}, rows.residual, rows.out);
}

template <int Width>
void gather_weights(const TileShape& shape, int64_t tokens, const float* table, const int64_t* row_ids,
                    float* weights) {
    for (int64_t t = 0; t < tokens; ++t) {
        const float* const row = table + row_ids[t] * shape.links;
        for (int64_t k = 0; k < shape.padded_links; k += Width)
            store<Width>(weights + t * shape.padded_links + k, load<Width>(row + k));
    }
}

template <int Width>
void sum_rows(Matrix rows, const TokenSpans& list, int64_t links, float* sum) {
    for (int64_t k = 0; k < links; k += Width) {
        Floats<Width> total = load_up_to<Width>(sum + k, links - k);
        for (const Span* span = list.spans; span < list.spans + list.count; ++span) {
            Floats<Width> part = {};
            for (int64_t t = span->begin; t < span->end; ++t)
                part += load<Width>(rows.data + list.tokens[t] * rows.ld + k);
            total += part;
        }
        store_up_to<Width>(sum + k, total, links - k);
    }
}

template <int Width>
inline void transpose_weights(const TileShape& shape, const Tile& tile, const float* weights, Matrix to) {
    for (int64_t k = 0; k < shape.links; k += Width) {
        const int64_t links = least(Width, shape.links - k);
        int64_t t = 0;
        for (; t + Width <= tile.count; t += Width) {
            Floats<Width> block[Width];
            PARAMIXER_UNROLL
            for (int i = 0; i < Width; ++i) block[i] = load<Width>(weights + (t + i) * shape.padded_links + k);
            transpose<Width>(block);
            PARAMIXER_UNROLL
            for (int i = 0; i < Width; ++i)
                if (i < links) store<Width>(to.data + (k + i) * to.ld + tile.start + t, block[i]);
        }
        for (; t < tile.count; ++t)
            for (int64_t i = 0; i < links; ++i)
                to.data[(k + i) * to.ld + tile.start + t] = weights[t * shape.padded_links + k + i];
    }
}

// Sums are of one tile in registers, then of a chunk's tiles in memory, then of the chunks: short sums keep float32
// accurate over a million tokens.
template <int Width>
PARAMIXER_INLINE void accumulate(float* sum, Floats<Width> value, Write write) {
    store<Width>(sum, write == Write::set ? value : load<Width>(sum) + value);
}

template <int Width>
PARAMIXER_INLINE void sum_columns(LeftRows rows, int64_t tokens, int64_t columns, float* sums, Write write) {
    for (int64_t c = 0; c < columns; c += Width) {
        // Four sums side by side: in a single one each addition would wait for the last.
        Floats<Width> parts[4] = {};
        int64_t t = 0;
        for (; t + 4 <= tokens; t += 4) {
            PARAMIXER_UNROLL
            for (int i = 0; i < 4; ++i) parts[i] += load<Width>(rows.data + (t + i) * rows.ld + c);
        }
        for (; t < tokens; ++t) parts[0] += load<Width>(rows.data + t * rows.ld + c);
        accumulate<Width>(sums + c, (parts[0] + parts[1]) + (parts[2] + parts[3]), write);
    }
}

// From the gradient of the link weights [tokens, padded_links] to those of the parameters and the inputs. The workspace
// holds the hidden layer and its slope; the gradient of the pre-activation replaces the slope.
template <int Width>
PARAMIXER_INLINE void backward_layers(const FactorContext& factor, int64_t tokens, const float* inputs,
                                      const float* dweights, float* dinputs, const Accumulation& into) {
    const TileShape& shape = factor.shape;
    const Workspace& work = factor.work;
    const GradientSums& sums = into.sums;
    const Write to_sums = into.to_sums, to_dinputs = into.to_dinputs;
    const int64_t hidden_vectors = shape.padded_hidden / Width;
    sum_columns<Width>({dweights, shape.padded_links}, tokens, shape.padded_links, sums.b2, to_sums);
    multiply<Width, true>({dweights, shape.padded_links}, strided<Width>(work.hidden, shape.hidden_ld), shape.links,
                          hidden_vectors, tokens, [&](int64_t link, int64_t unit, Floats<Width> sum) {
                              accumulate<Width>(sums.w2 + link * shape.padded_hidden + unit, sum, to_sums);
                          });

    float* const dunits = work.slope;
    multiply<Width, false>({dweights, shape.padded_links}, packed<Width>(factor.packed.w2_transposed, shape.links),
                           tokens, hidden_vectors, shape.links, [&](int64_t token, int64_t unit, Floats<Width> sum) {
                               float* slope = work.slope + token * shape.hidden_ld + unit;
                               store<Width>(slope, sum * load<Width>(slope));
                           });
    sum_columns<Width>({dunits, shape.hidden_ld}, tokens, shape.padded_hidden, sums.b1, to_sums);
    multiply<Width, true>({inputs, shape.inputs}, strided<Width>(dunits, shape.hidden_ld), shape.inputs, hidden_vectors,
                          tokens, [&](int64_t input, int64_t unit, Floats<Width> sum) {
                              accumulate<Width>(sums.w1 + input * shape.padded_hidden + unit, sum, to_sums);
                          });
    multiply<Width, false>({dunits, shape.hidden_ld}, packed<Width>(factor.packed.w1_transposed, shape.hidden), tokens,
                           shape.padded_inputs / Width, shape.hidden,
                           [&](int64_t token, int64_t input, Floats<Width> sum) {
                               float* to = dinputs + token * shape.inputs + input;
                               const int64_t left = shape.inputs - input;
                               if (left >= Width)
                                   accumulate<Width>(to, sum, to_dinputs);
                               else if (to_dinputs == Write::set)
                                   store_part<Width>(to, sum, left);
                               else
                                   store_part<Width>(to, load_part<Width>(to, left) + sum, left);
                           });
}

template <int Width>
void backward_tile(const FactorContext& factor, const Tile& tile, const BackwardTile& rows, const Accumulation& into) {
    const TileShape& shape = factor.shape;
    const Workspace& work = factor.work;
    first_layer<Width>(factor, tile.count, rows.inputs);
    gelu_and_slope_all<Width>(work.hidden, work.slope, tile.count * shape.hidden_ld);
    link_weights<Width>(factor, tile.count);
    transpose_weights<Width>(shape, tile, work.weights, rows.weights);
    dot_tile<Width>({tile, factor.links, rows.values, shape.channels, shape.channels, work.runs}, rows.grad,
                    {work.dweights, shape.padded_links}, shape.padded_links);
    backward_layers<Width>(factor, tile.count, rows.inputs, work.dweights, rows.dinputs, into);
}

template <int Width>
void mlp_backward_tile(const FactorContext& factor, int64_t tokens, const MlpBackwardTile& rows,
                       const Accumulation& into) {
    const TileShape& shape = factor.shape;
    const Workspace& work = factor.work;
    first_layer<Width>(factor, tokens, rows.inputs);
    gelu_and_slope_all<Width>(work.hidden, work.slope, tokens * shape.hidden_ld);
    const float* grad = rows.grad;
    if (shape.links != shape.padded_links) {
        for (int64_t t = 0; t < tokens; ++t)
            for (int64_t k = 0; k < shape.padded_links; ++k)
                work.dweights[t * shape.padded_links + k] = k < shape.links ? grad[t * shape.links + k] : 0.0f;
        grad = work.dweights;
    }
    backward_layers<Width>(factor, tokens, rows.inputs, grad, rows.dinputs, into);
}

}  // namespace PARAMIXER_SET
}  // namespace paramixer
