// One factor of the chain on one tile: link weights from a small MLP, then the mix; and its backward pass.
#pragma once

#include "gelu.h"
#include "gemm.h"
#include "mix.h"

namespace paramixer {
namespace PARAMIXER_SET {

template <int Width>
PARAMIXER_INLINE void first_layer(const TileShape& shape, const PackedFactor& factor, int64_t tokens,
                                  const float* inputs, const Workspace& work) {
    multiply<Width, false>(inputs, shape.inputs, packed<Width>(factor.w1, shape.inputs), tokens,
                           shape.padded_hidden / Width, shape.inputs,
                           [&](int64_t token, int64_t unit, Floats<Width> sum) {
                               store<Width>(work.hidden + token * shape.hidden_step + unit,
                                            sum + load<Width>(factor.b1 + unit));
                           });
}

// finish(token, link, vector) for the link weights of all tokens.
template <int Width, class Finish>
PARAMIXER_INLINE void second_layer(const TileShape& shape, const PackedFactor& factor, int64_t tokens,
                                   const Workspace& work, const Finish& finish) {
    multiply<Width, false>(work.hidden, shape.hidden_step, packed<Width>(factor.w2, shape.hidden), tokens,
                           shape.padded_links / Width, shape.hidden,
                           [&](int64_t token, int64_t link, Floats<Width> sum) {
                               finish(token, link, sum + load<Width>(factor.b2 + link));
                           });
}

template <int Width>
PARAMIXER_INLINE void link_weights(const TileShape& shape, const PackedFactor& factor, int64_t tokens,
                                   const Workspace& work) {
    second_layer<Width>(shape, factor, tokens, work, [&](int64_t token, int64_t link, Floats<Width> sum) {
        store<Width>(work.weights + token * shape.padded_links + link, sum);
    });
}

// The MLP alone: what would be link weights are the result, rows of `links` floats.
template <int Width>
void mlp_tile(const TileShape& shape, const PackedFactor& factor, int64_t tokens, const float* inputs, float* out,
              const Workspace& work) {
    first_layer<Width>(shape, factor, tokens, inputs, work);
    gelu_all<Width>(work.hidden, tokens * shape.hidden_step);
    second_layer<Width>(shape, factor, tokens, work, [&](int64_t token, int64_t link, Floats<Width> sum) {
        float* const to = out + token * shape.links + link;
        const int64_t left = shape.links - link;
        if (left >= Width)
            store<Width>(to, sum);
        else
            store_part<Width>(to, sum, left);
    });
}

template <int Width>
void forward_tile(const TileShape& shape, const PackedFactor& factor, const Tile& tile, const Links& links,
                  const float* inputs, const float* values, const float* residual, float* out, const Workspace& work) {
    first_layer<Width>(shape, factor, tile.count, inputs, work);
    gelu_all<Width>(work.hidden, tile.count * shape.hidden_step);
    link_weights<Width>(shape, factor, tile.count, work);
    mix_tile<Width>(tile, links, false, {work.weights, shape.padded_links, 1}, values, shape.channels, residual, out,
                    work.runs);
}

template <int Width>
void look_up(const TileShape& shape, int64_t tokens, const float* written, const int64_t* ids, float* weights) {
    for (int64_t t = 0; t < tokens; ++t) {
        const float* const row = written + ids[t] * shape.links;
        for (int64_t k = 0; k < shape.padded_links; k += Width)
            store<Width>(weights + t * shape.padded_links + k, load<Width>(row + k));
    }
}

template <int Width>
void add_rows_of(const float* rows, int64_t step, const int64_t* tokens, const Span* spans, int64_t count,
                 int64_t links, float* sum) {
    for (int64_t k = 0; k < links; k += Width) {
        const int64_t left = links - k;
        Floats<Width> total = left >= Width ? load<Width>(sum + k) : load_part<Width>(sum + k, left);
        for (const Span* span = spans; span < spans + count; ++span) {
            Floats<Width> part = {};
            for (int64_t t = span->begin; t < span->end; ++t) part += load<Width>(rows + tokens[t] * step + k);
            total += part;
        }
        if (left >= Width)
            store<Width>(sum + k, total);
        else
            store_part<Width>(sum + k, total, left);
    }
}

// A link's weights side by side, as the adjoint mix will read them.
template <int Width>
inline void store_transposed(const TileShape& shape, const Tile& tile, const float* weights, float* to,
                                       int64_t step) {
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
                if (i < links) store<Width>(to + (k + i) * step + tile.start + t, block[i]);
        }
        for (; t < tile.count; ++t)
            for (int64_t i = 0; i < links; ++i)
                to[(k + i) * step + tile.start + t] = weights[t * shape.padded_links + k + i];
    }
}

// Sums are of one tile in registers, then of a chunk's tiles in memory, then of the chunks: short sums keep float32
// accurate over a million tokens.
template <int Width>
PARAMIXER_INLINE void add_to(float* sum, Floats<Width> value, bool first) {
    store<Width>(sum, first ? value : load<Width>(sum) + value);
}

template <int Width>
PARAMIXER_INLINE void add_rows(const float* rows, int64_t step, int64_t tokens, int64_t columns, float* sums,
                               bool first) {
    for (int64_t c = 0; c < columns; c += Width) {
        // Four sums side by side: in a single one each addition would wait for the last.
        Floats<Width> parts[4] = {};
        int64_t t = 0;
        for (; t + 4 <= tokens; t += 4) {
            PARAMIXER_UNROLL
            for (int i = 0; i < 4; ++i) parts[i] += load<Width>(rows + (t + i) * step + c);
        }
        for (; t < tokens; ++t) parts[0] += load<Width>(rows + t * step + c);
        add_to<Width>(sums + c, (parts[0] + parts[1]) + (parts[2] + parts[3]), first);
    }
}

// From the gradient of the link weights to those of the parameters and the inputs. The hidden layer and its slope are
// in the workspace; the slope makes way for the gradient of the pre-activation.
template <int Width>
PARAMIXER_INLINE void backward_layers(const TileShape& shape, const PackedFactor& factor, int64_t tokens,
                                      const float* inputs, const float* dweights, float* dinputs, bool begin_inputs,
                                      const GradientSums& sums, bool first, const Workspace& work) {
    const int64_t hidden_vectors = shape.padded_hidden / Width;
    add_rows<Width>(dweights, shape.padded_links, tokens, shape.padded_links, sums.b2, first);
    multiply<Width, true>(dweights, shape.padded_links, strided<Width>(work.hidden, shape.hidden_step), shape.links,
                          hidden_vectors, tokens, [&](int64_t link, int64_t unit, Floats<Width> sum) {
                              add_to<Width>(sums.w2 + link * shape.padded_hidden + unit, sum, first);
                          });

    float* const dunits = work.slope;
    multiply<Width, false>(dweights, shape.padded_links, packed<Width>(factor.w2_transposed, shape.links), tokens,
                           hidden_vectors, shape.links, [&](int64_t token, int64_t unit, Floats<Width> sum) {
                               float* slope = work.slope + token * shape.hidden_step + unit;
                               store<Width>(slope, sum * load<Width>(slope));
                           });
    add_rows<Width>(dunits, shape.hidden_step, tokens, shape.padded_hidden, sums.b1, first);
    multiply<Width, true>(inputs, shape.inputs, strided<Width>(dunits, shape.hidden_step), shape.inputs, hidden_vectors,
                          tokens, [&](int64_t input, int64_t unit, Floats<Width> sum) {
                              add_to<Width>(sums.w1 + input * shape.padded_hidden + unit, sum, first);
                          });
    multiply<Width, false>(dunits, shape.hidden_step, packed<Width>(factor.w1_transposed, shape.hidden), tokens,
                           shape.padded_inputs / Width, shape.hidden,
                           [&](int64_t token, int64_t input, Floats<Width> sum) {
                               float* to = dinputs + token * shape.inputs + input;
                               const int64_t left = shape.inputs - input;
                               if (left >= Width)
                                   add_to<Width>(to, sum, begin_inputs);
                               else if (begin_inputs)
                                   store_part<Width>(to, sum, left);
                               else
                                   store_part<Width>(to, load_part<Width>(to, left) + sum, left);
                           });
}

template <int Width>
void backward_tile(const TileShape& shape, const PackedFactor& factor, const Tile& tile, const Links& links,
                   const float* inputs, const float* values, const float* grad, float* weights, int64_t weights_step,
                   float* dinputs, bool begin_inputs, const GradientSums& sums, bool first, const Workspace& work) {
    first_layer<Width>(shape, factor, tile.count, inputs, work);
    gelu_and_slope_all<Width>(work.hidden, work.slope, tile.count * shape.hidden_step);
    link_weights<Width>(shape, factor, tile.count, work);
    store_transposed<Width>(shape, tile, work.weights, weights, weights_step);
    dot_tile<Width>(tile, links, grad, values, shape.channels, work.dweights, shape.padded_links, work.runs);
    backward_layers<Width>(shape, factor, tile.count, inputs, work.dweights, dinputs, begin_inputs, sums, first, work);
}

template <int Width>
void mlp_backward_tile(const TileShape& shape, const PackedFactor& factor, int64_t tokens, const float* inputs,
                       const float* grad, float* dinputs, bool begin_inputs, const GradientSums& sums, bool first,
                       const Workspace& work) {
    first_layer<Width>(shape, factor, tokens, inputs, work);
    gelu_and_slope_all<Width>(work.hidden, work.slope, tokens * shape.hidden_step);
    if (shape.links != shape.padded_links) {
        for (int64_t t = 0; t < tokens; ++t)
            for (int64_t k = 0; k < shape.padded_links; ++k)
                work.dweights[t * shape.padded_links + k] = k < shape.links ? grad[t * shape.links + k] : 0.0f;
        grad = work.dweights;
    }
    backward_layers<Width>(shape, factor, tokens, inputs, grad, dinputs, begin_inputs, sums, first, work);
}

}  // namespace PARAMIXER_SET
}  // namespace paramixer
