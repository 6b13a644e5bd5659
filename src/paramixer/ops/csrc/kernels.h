// What is compiled once per instruction set: kernels on one tile of consecutive tokens of one sequence. Everything
// around them (tiles, threads, memory) is compiled once, for the baseline. Only plain data crosses this border, so that
// the linker can never merge a function built for one instruction set into another.
#pragma once

#include <cstdint>

namespace paramixer {

struct Tile {
    int64_t batch, start, count, length;  // tokens start .. start + count of a sequence of `length` tokens
};

struct Links {
    const int64_t* offsets;  // any sign and size
    int64_t count;
    bool ring;
};

// Part of a list: begin .. end.
struct Span {
    int64_t begin, end;
};

// One link over consecutive tokens: its source rows are consecutive too, until the sequence ends.
struct Run {
    const float* rows;
    const float* weights;
    int64_t link;
};

// Where a link's weight for a token is found.
struct WeightView {
    const float* data;
    int64_t token_step, link_step;
};

// Widths padded to whole vectors, and the leading dimensions of what a tile keeps in cache.
struct TileShape {
    int64_t inputs, hidden, links, channels;
    int64_t padded_inputs, padded_hidden, padded_links;
    int64_t hidden_step;
};

// One factor's parameters, in panels of two vectors' columns (see gemm.h).
struct PackedFactor {
    const float *w1, *b1, *w2, *b2;
    const float *w1_transposed, *w2_transposed;  // for the backward pass
};

struct Workspace {
    float* hidden;    // [tokens, hidden_step]
    float* slope;     // [tokens, hidden_step]: gelu's derivative, then the gradient of the pre-activation
    float* weights;   // [tokens, padded_links]
    float* dweights;  // [tokens, padded_links]
    Run* runs;        // [links]
};

// A chunk of tiles sums its parameter gradients here.
struct GradientSums {
    float* w1;  // [inputs, padded_hidden]
    float* b1;  // [padded_hidden]
    float* w2;  // [links, padded_hidden], transposed
    float* b2;  // [padded_links]
};

struct Kernels {
    int64_t width;

    // out[t] = residual[t] + sum_k weight * values[t + offset_k]; `values` is the whole sequence, `out` and `residual`
    // (may be null) begin at the tile, and so do the weights.
    void (*mix)(const Tile&, const Links&, const WeightView&, const float* values, int64_t channels,
                const float* residual, float* out, Run* runs);
    // The adjoint: out[t] = residual[t] + sum_k weight[t - offset_k] * values[t - offset_k]; `weights` is the whole
    // sequence.
    void (*mix_adjoint)(const Tile&, const Links&, const WeightView&, const float* values, int64_t channels,
                        const float* residual, float* out, Run* runs);
    // dweights[t, k] = grad[t] . values[t + offset_k]; `grad` and `dweights` begin at the tile.
    void (*mix_dweights)(const Tile&, const Links&, const float* grad, const float* values, int64_t channels,
                         float* dweights, int64_t step, Run* runs);

    // One factor on one tile. `inputs`, `residual` and `out` begin at the tile.
    void (*forward)(const TileShape&, const PackedFactor&, const Tile&, const Links&, const float* inputs,
                    const float* values, const float* residual, float* out, const Workspace&);
    // Recomputes the factor, writes its weights as `weights` [links, length] of the sequence, adds to the sums (or
    // begins them, if `first`) and to `dinputs` (or begins it, if `begin_inputs`).
    void (*backward)(const TileShape&, const PackedFactor&, const Tile&, const Links&, const float* inputs,
                     const float* values, const float* grad, float* weights, int64_t weights_step, float* dinputs,
                     bool begin_inputs, const GradientSums&, bool first, const Workspace&);

    // A tile's weights, those of its tokens' rows of `written` [symbols, links]; and a tile's weights as those of the
    // sequence, [links, length]: a link's side by side, as the adjoint mix will read them.
    void (*look_up)(const TileShape&, int64_t tokens, const float* written, const int64_t* ids, float* weights);
    void (*transpose_weights)(const TileShape&, const Tile&, const float* weights, float* to, int64_t step);
    // Adds the rows of `links` floats, a step apart, of the spans' tokens to the sum, span by span.
    void (*add_rows_of)(const float* rows, int64_t step, const int64_t* tokens, const Span* spans, int64_t count,
                        int64_t links, float* sum);

    // The factor's MLP alone: `out` and `grad` hold what would be the link weights, as rows of `links` floats.
    void (*mlp)(const TileShape&, const PackedFactor&, int64_t tokens, const float* inputs, float* out,
                const Workspace&);
    void (*mlp_backward)(const TileShape&, const PackedFactor&, int64_t tokens, const float* inputs, const float* grad,
                         float* dinputs, bool begin_inputs, const GradientSums&, bool first, const Workspace&);

    // Elements first .. first + count of a dropout whose keys are given; pointers begin at `first`.
    void (*dropout)(int64_t first, int64_t count, const float* values, const uint32_t* keys, uint32_t threshold,
                    float scale, float* out);
};

// The set in use. Kernels of one operation all come from one call of this.
const Kernels& kernels();

}  // namespace paramixer
