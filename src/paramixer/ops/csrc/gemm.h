// Products of a tile with a small matrix, block by block in registers. The caller's `finish(row, column, vector)` takes
// each finished vector (bias, GELU, accumulate, ...), so that no intermediate result goes through memory.
#pragma once

#include "vector.h"

namespace paramixer {
namespace PARAMIXER_SET {

// The right-hand side: rows of whole vectors. Packed: panels of two vectors' columns, each panel contiguous.
struct Columns {
    const float* data;
    int64_t ld;             // from row to row; 0: packed, the panel's own width
    int64_t vector_stride;  // from one vector's columns to the next
};

template <int Width>
PARAMIXER_INLINE Columns packed(const float* data, int64_t depth) {
    return {data, 0, Width * depth};
}

template <int Width>
PARAMIXER_INLINE Columns strided(const float* data, int64_t ld) {
    return {data, ld, Width};
}

// left [rows, depth] times right [depth, Vectors * Width]; `row` and `column` are where the product begins in the
// whole.
struct Product {
    const float* left;
    int64_t left_ld;
    const float* right;
    int64_t right_ld, depth, row, column;
};

// Transposed: the left-hand side is stored as left[depth][row] instead of left[row][depth].
template <int Width, int Rows, int Vectors, bool Transposed, class Finish>
PARAMIXER_INLINE void multiply_block(Product product, const Finish& finish) {
    const float *left = product.left, *right = product.right;
    Floats<Width> sums[Rows][Vectors] = {};
    for (int64_t d = 0; d < product.depth; ++d) {
        Floats<Width> columns[Vectors];
        PARAMIXER_UNROLL
        for (int v = 0; v < Vectors; ++v) columns[v] = load<Width>(right + v * Width);
        PARAMIXER_UNROLL
        for (int r = 0; r < Rows; ++r) {
            const float factor = Transposed ? left[r] : left[r * product.left_ld];
            PARAMIXER_UNROLL
            for (int v = 0; v < Vectors; ++v) sums[r][v] += factor * columns[v];
        }
        left += Transposed ? product.left_ld : 1;
        right += product.right_ld;
    }
    PARAMIXER_UNROLL
    for (int r = 0; r < Rows; ++r) {
        PARAMIXER_UNROLL
        for (int v = 0; v < Vectors; ++v) finish(product.row + r, product.column + v * Width, sums[r][v]);
    }
}

// Turns the run-time number of rows into a compile-time one.
template <int Width, int Rows, int Vectors, bool Transposed, class Finish>
PARAMIXER_INLINE void multiply_rows(int64_t rows, Product product, const Finish& finish) {
    if (rows == Rows)
        multiply_block<Width, Rows, Vectors, Transposed>(product, finish);
    else if constexpr (Rows > 1)
        multiply_rows<Width, Rows - 1, Vectors, Transposed>(rows, product, finish);
}

template <int Width, int Vectors, bool Transposed, class Finish>
PARAMIXER_INLINE void multiply_panel(Product panel, int64_t rows, const Finish& finish) {
    // Twelve accumulators, two columns and a factor fill 16 registers; eight are enough to keep the multipliers busy,
    // and a panel of one vector is rare, so it is not worth compiling for more row counts.
    constexpr int most = Vectors == 2 ? 6 : 8;
    const int64_t blocks = divide_up(rows, most);
    // Evenly sized blocks: a block of one or two rows would wait for its own sums.
    for (int64_t block = 0, row = 0; block < blocks; ++block) {
        const int64_t next = (block + 1) * rows / blocks;
        const float* const left = panel.left + (Transposed ? row : row * panel.left_ld);
        multiply_rows<Width, most, Vectors, Transposed>(
            next - row, {left, panel.left_ld, panel.right, panel.right_ld, panel.depth, row, panel.column}, finish);
        row = next;
    }
}

// The left-hand side, [rows, depth].
struct LeftRows {
    const float* data;
    int64_t ld;
};

// finish(row, column, vector) for every vector of left [rows, depth] times right [depth, vectors * Width].
template <int Width, bool Transposed, class Finish>
PARAMIXER_INLINE void multiply(LeftRows left, Columns right, int64_t rows, int64_t vectors, int64_t depth,
                               const Finish& finish) {
    const auto panel = [&](int64_t v, int64_t packed_ld) {
        return Product{
            left.data, left.ld,  right.data + v * right.vector_stride, right.ld ? right.ld : packed_ld, depth,
            0,         v * Width};
    };
    int64_t v = 0;
    for (; v + 2 <= vectors; v += 2) multiply_panel<Width, 2, Transposed>(panel(v, 2 * Width), rows, finish);
    if (v < vectors) multiply_panel<Width, 1, Transposed>(panel(v, Width), rows, finish);
}

}  // namespace PARAMIXER_SET
}  // namespace paramixer
