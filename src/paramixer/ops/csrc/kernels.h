// The interface between the code compiled once per instruction set (kernels on one tile of consecutive tokens of one
// sequence) and the code compiled once for the baseline (tiles, threads, memory). Only plain data crosses it, so that
// the linker can never merge a function built for one instruction set into another.
#pragma once

#include <cstdint>

namespace paramixer {

// Tokens start .. start + count of a sequence of `length` tokens.
struct Tile {
    int64_t batch, start, count, length;
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

// A row-major matrix whose rows are `ld` floats apart (BLAS's leading dimension).
struct Matrix {
    float* data;
    int64_t ld;
};

// The weight of a link for a token: data[token * token_stride + link * link_stride].
struct WeightView {
    const float* data;
    int64_t token_stride, link_stride;
};

// The rows that a tile's tokens read along their links.
struct Gather {
    Tile tile;
    Links links;
    const float* values;   // the whole sequence, [length, channels]
    int64_t channels, ld;  // of all rows of values: `ld` floats apart
    Run* runs;             // scratch memory, [links]
};

// Widths padded to whole vectors, and the leading dimension of the hidden layer.
struct TileShape {
    int64_t inputs, hidden, links, channels;
    int64_t padded_inputs, padded_hidden, padded_links;
    int64_t hidden_ld;
};

// One factor's parameters, in panels of two vectors' columns (see gemm.h).
struct PackedFactor {
    const float *w1, *b1, *w2, *b2;
    const float *w1_transposed, *w2_transposed;  // for the backward pass
};

// A thread's scratch memory.
struct Workspace {
    float* hidden;    // [tokens, hidden_ld]
    float* slope;     // [tokens, hidden_ld]: GELU's derivative, then the gradient of the pre-activation
    float* weights;   // [tokens, padded_links]
    float* dweights;  // [tokens, padded_links]
    Run* runs;        // [links]
};

// What one thread needs to compute one factor.
struct FactorContext {
    TileShape shape;
    PackedFactor packed;
    Links links;
    Workspace work;
};

// The forward pass of a factor on a tile. `inputs`, `residual` (may be null) and `out` begin at the tile, `values` at
// the sequence.
struct ForwardTile {
    const float *inputs, *values, *residual;
    float* out;
};

// The backward pass. `inputs`, `grad` and `dinputs` begin at the tile, `values` and `weights` at the sequence.
struct BackwardTile {
    const float *inputs, *values, *grad;
    Matrix weights;  // output, [links, length]
    float* dinputs;
};

// The backward pass of the factor's MLP alone; all pointers begin at the tile. `grad` has rows of `links` floats.
struct MlpBackwardTile {
    const float *inputs, *grad;
    float* dinputs;
};

// The parameter gradients of a chunk of tiles.
struct GradientSums {
    float* w1;  // [inputs, padded_hidden]
    float* b1;  // [padded_hidden]
    float* w2;  // [links, padded_hidden], transposed
    float* b2;  // [padded_links]
};

enum class Write { set, add };

// Where gradients go, and whether they replace what is there or are added to it.
struct Accumulation {
    GradientSums sums;
    Write to_sums, to_dinputs;
};

// Lists of tokens: tokens[span.begin .. span.end] for each of `count` spans.
struct TokenSpans {
    const int64_t* tokens;
    const Span* spans;
    int64_t count;
};

// An element is dropped if its 32 random bits, a hash of the keys and its number, are below the threshold.
struct DropoutMask {
    uint32_t keys[3];
    uint32_t threshold;
    float scale;  // of the elements that are not dropped
};

struct Kernels {
    int64_t width;

    // out[t] = residual[t] + sum_k weight[t, k] * values[t + offset_k]. `weights`, `residual` (may be null) and `out`
    // begin at the tile. The rows of values, gradients, residuals and results are equally far apart.
    void (*mix)(const Gather&, const WeightView& weights, const float* residual, float* out);
    // The adjoint: out[t] = residual[t] + sum_k weight[t - offset_k, k] * values[t - offset_k]. `weights` begins at the
    // sequence.
    void (*mix_adjoint)(const Gather&, const WeightView& weights, const float* residual, float* out);
    // dweights[t, k] = grad[t] . values[t + offset_k]. `grad` and `dweights` begin at the tile; a row of dweights may
    // be overwritten up to `padded`.
    void (*mix_dweights)(const Gather&, const float* grad, Matrix dweights, int64_t padded);

    void (*forward)(const FactorContext&, const Tile&, const ForwardTile&);
    // Recomputes the factor, stores its weights link by link, and accumulates the gradients.
    void (*backward)(const FactorContext&, const Tile&, const BackwardTile&, const Accumulation&);

    // Copies the tokens' rows of the link table [rows, links] to `weights` [tokens, padded_links].
    void (*gather_weights)(const TileShape&, int64_t tokens, const float* table, const int64_t* row_ids,
                           float* weights);
    // Stores a tile's weights [tokens, padded_links] into those of the sequence, `to` [links, length].
    void (*transpose_weights)(const TileShape&, const Tile&, const float* weights, Matrix to);
    // Adds the rows of the spans' tokens, `links` floats each, to the sum, span by span.
    void (*sum_rows)(Matrix rows, const TokenSpans&, int64_t links, float* sum);

    // The factor's MLP alone: `out` holds the link weights as rows of `links` floats.
    void (*mlp)(const FactorContext&, int64_t tokens, const float* inputs, float* out);
    void (*mlp_backward)(const FactorContext&, int64_t tokens, const MlpBackwardTile&, const Accumulation&);

    // Elements first .. first + count; `values` and `out` begin at `first`.
    void (*dropout)(const DropoutMask&, int64_t first, int64_t count, const float* values, float* out);
};

// The kernels of the instruction set in use. An operation calls this once, so that all its kernels are of one set.
const Kernels& kernels();

}  // namespace paramixer
