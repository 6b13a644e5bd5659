#include "chain_plan.h"

#include <algorithm>

namespace paramixer {
namespace {

int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

TileShape make_shape(const ChainSizes& sizes, int64_t width) {
    TileShape shape;
    shape.inputs = sizes.inputs;
    shape.hidden = sizes.hidden;
    shape.links = sizes.links;
    shape.channels = sizes.channels;
    shape.padded_inputs = round_up(sizes.inputs, width);
    shape.padded_hidden = round_up(sizes.hidden, width);
    shape.padded_links = round_up(sizes.links, width);
    // Rows a multiple of 512 bytes apart would share a few cache sets.
    shape.hidden_ld = shape.padded_hidden + (shape.padded_hidden % 128 == 0 ? width : 0);
    return shape;
}

std::vector<Tile> make_chain_tiles(const ChainSizes& sizes) {
    if (!sizes.heads) return make_tiles(sizes.batch, sizes.length, sizes.lengths, tile_tokens);
    std::vector<int64_t> lengths;
    for (int64_t b = 0; b < sizes.batch; ++b)
        lengths.insert(lengths.end(), sizes.heads, sizes.lengths ? sizes.lengths[b] : sizes.length);
    return make_tiles(sizes.batch * sizes.heads, sizes.length, lengths.data(), tile_tokens);
}

// A matrix of any strides.
struct Source {
    const float* data;
    int64_t rows, row_stride, columns, column_stride;
};

// Copies the matrix into panels of 2 * width columns, padded with zeros (see gemm.h).
void pack_panels(const Source& source, int64_t width, float* panels) {
    const int64_t columns = source.columns;
    const int64_t padded = round_up(columns, width);
    for (int64_t begin = 0; begin < padded; begin += 2 * width) {
        const int64_t end = std::min(begin + 2 * width, padded);
        for (int64_t row = 0; row < source.rows; ++row)
            for (int64_t column = begin; column < end; ++column)
                *panels++ =
                    column < columns ? source.data[row * source.row_stride + column * source.column_stride] : 0.0f;
    }
}

// Offsets of a factor's packed parameters, in floats; w1 is at 0.
struct PackedLayout {
    int64_t b1, w2, b2, w1_transposed, w2_transposed, end;
};

PackedLayout packed_layout(const TileShape& shape, bool backward) {
    PackedLayout at;
    at.b1 = shape.inputs * shape.padded_hidden;
    at.w2 = at.b1 + shape.padded_hidden;
    at.b2 = at.w2 + shape.hidden * shape.padded_links;
    at.w1_transposed = at.b2 + shape.padded_links;
    at.w2_transposed = at.w1_transposed + (backward ? shape.hidden * shape.padded_inputs : 0);
    at.end = at.w2_transposed + (backward ? shape.links * shape.padded_hidden : 0);
    return at;
}

}  // namespace

ChainPlan::ChainPlan(const ChainSizes& sizes, const Parameters& parameters, Pass pass, const Kernels& kernel)
    : WavePlan(make_chain_tiles(sizes), sizes.length, sizeof(float) * (sizes.inputs + 2 * sizes.channels)),
      sizes(sizes),
      kernel(kernel),
      shape(make_shape(sizes, kernel.width)),
      parameters_(parameters),
      work_floats_(round_up(tile_tokens * (2 * shape.hidden_ld + 2 * shape.padded_links), 16)),
      pass_(pass),
      factor_floats_(round_up(packed_layout(shape, pass == Pass::backward).end, 16)),
      work_(work_floats_ * max_threads()),
      packed_(factor_floats_ * sizes.factors * std::max<int64_t>(sizes.heads, 1)),
      runs_(sizes.links * max_threads()) {
    if (sizes.heads)
        for (const Chunk& chunk : chunks) chunk_heads.push_back(head_of(tiles[chunk.begin]));
#pragma omp parallel for schedule(static)
    for (int64_t index = 0; index < sizes.factors * std::max<int64_t>(sizes.heads, 1); ++index) pack(index);
}

void ChainPlan::pack(int64_t index) {
    const int64_t inputs = shape.inputs, hidden = shape.hidden, links = shape.links, width = kernel.width;
    const float* const w1 = parameters_.w1 + index * inputs * hidden;
    const float* const w2 = parameters_.w2 + index * hidden * links;
    float* const to = packed_.data() + index * factor_floats_;
    const PackedLayout at = packed_layout(shape, pass_ == Pass::backward);
    pack_panels({w1, inputs, hidden, hidden, 1}, width, to);
    pack_panels({parameters_.b1 + index * hidden, 1, 0, hidden, 1}, width, to + at.b1);
    pack_panels({w2, hidden, links, links, 1}, width, to + at.w2);
    pack_panels({parameters_.b2 + index * links, 1, 0, links, 1}, width, to + at.b2);
    if (pass_ == Pass::forward) return;
    pack_panels({w1, hidden, 1, inputs, hidden}, width, to + at.w1_transposed);
    pack_panels({w2, links, 1, hidden, links}, width, to + at.w2_transposed);
}

FactorContext ChainPlan::context(int64_t factor, int64_t head) {
    const int64_t index = head * sizes.factors + factor;
    const float* const packed = packed_.data() + index * factor_floats_;
    const PackedLayout at = packed_layout(shape, pass_ == Pass::backward);
    const int thread = thread_number();
    FactorContext context;
    context.shape = shape;
    context.packed = {
        packed, packed + at.b1, packed + at.w2, packed + at.b2, packed + at.w1_transposed, packed + at.w2_transposed};
    context.links = {parameters_.offsets + index * sizes.links, sizes.links, sizes.ring};
    Workspace& work = context.work;
    work.hidden = work_.data() + thread * work_floats_;
    work.slope = work.hidden + tile_tokens * shape.hidden_ld;
    work.weights = work.slope + tile_tokens * shape.hidden_ld;
    work.dweights = work.weights + tile_tokens * shape.padded_links;
    work.runs = runs_.data() + thread * sizes.links;
    return context;
}

void ChainPlan::select_head(int64_t factor, const Tile& tile, FactorContext& context) {
    const int64_t head = head_of(tile);
    if (context.links.offsets != parameters_.offsets + (head * sizes.factors + factor) * sizes.links)
        context = this->context(factor, head);
}

void ChainPlan::forward(int64_t factor, const Wave& wave, const ForwardRows& rows) {
    const int64_t channels = sizes.channels;
    const float* const residual = sizes.residual == Residual::factor  ? rows.values
                                  : sizes.residual == Residual::block ? rows.first_values
                                                                      : nullptr;
    FactorContext context = this->context(factor);
    const Workspace& work = context.work;
    for_each_tile(wave, [&](const Tile& tile) {
        select_head(factor, tile, context);
        const int64_t sequence = tile.batch * sizes.length - wave.row_begin, token = sequence + tile.start;
        const float* const values = rows.values + sequence * channels;
        const float* const added = residual ? residual + token * channels : nullptr;
        float* const out = rows.out + token * channels;
        if (rows.link_table) {
            kernel.gather_weights(shape, tile.count, rows.link_table, sizes.row_ids + wave.row_begin + token,
                                  work.weights);
            kernel.mix({tile, context.links, values, channels, channels, work.runs},
                       {work.weights, shape.padded_links, 1}, added, out);
        } else {
            kernel.forward(context, tile, {rows.inputs + token * shape.inputs, values, added, out});
        }
    });
}

void ChainPlan::mlp_backward(int64_t factor, const Wave& wave, const MlpBackwardTile& rows, Write to_dinputs,
                             ChunkSums& sums, const ChainGradients& gradients) {
    const FactorContext context = this->context(factor);
    for_each_chunk(wave, sums, [&](const Tile& tile, const GradientSums& into, Write to_sums) {
        const int64_t token = tile.batch * sizes.length + tile.start;
        kernel.mlp_backward(
            context, tile.count,
            {rows.inputs + token * sizes.inputs, rows.grad + token * sizes.links, rows.dinputs + token * sizes.inputs},
            {into, to_sums, to_dinputs});
    });
    sums.reduce(factor, wave.chunks(), gradients);
#pragma omp barrier
}

}  // namespace paramixer
