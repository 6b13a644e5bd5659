// Products of a tile with a small matrix, block by block in registers. What happens to a finished block (bias, GELU,
// accumulate, ...) is the caller's `finish(row, column, vector)`, so that no intermediate makes a trip through memory.
#pragma once

#include "vector.h"

namespace paramixer {
namespace PARAMIXER_SET {

// The right-hand side: rows of whole vectors. Packed: panels of two vectors' columns, each panel contiguous.
struct Columns {
    const float* data;
    int64_t step;         // from row to row; 0: packed, the panel's own width
    int64_t vector_step;  // from one vector's columns to the next
};

template <int Width>
PARAMIXER_INLINE Columns packed(const float* data, int64_t depth) {
    return {data, 0, Width * depth};
}

template <int Width>
PARAMIXER_INLINE Columns strided(const float* data, int64_t step) {
    return {data, step, Width};
}

// Transposed: the left-hand side is read as left[depth][row] instead of left[row][depth].
template <int Width, int Rows, int Vectors, bool Transposed, class Finish>
PARAMIXER_INLINE void multiply_block(const float* left, int64_t left_step, const float* right, int64_t right_step,
                                     int64_t depth, int64_t row, int64_t column, const Finish& finish) {
    Floats<Width> sums[Rows][Vectors] = {};
    for (int64_t d = 0; d < depth; ++d) {
        Floats<Width> columns[Vectors];
        PARAMIXER_UNROLL
        for (int v = 0; v < Vectors; ++v) columns[v] = load<Width>(right + v * Width);
        PARAMIXER_UNROLL
        for (int r = 0; r < Rows; ++r) {
            const float factor = Transposed ? left[r] : left[r * left_step];
            PARAMIXER_UNROLL
            for (int v = 0; v < Vectors; ++v) sums[r][v] += factor * columns[v];
        }
        left += Transposed ? left_step : 1;
        right += right_step;
    }
    PARAMIXER_UNROLL
    for (int r = 0; r < Rows; ++r) {
        PARAMIXER_UNROLL
        for (int v = 0; v < Vectors; ++v) finish(row + r, column + v * Width, sums[r][v]);
    }
}

// Turns the run-time number of rows into a compile-time one.
template <int Width, int Rows, int Vectors, bool Transposed, class Finish>
PARAMIXER_INLINE void multiply_rows(int64_t rows, const float* left, int64_t left_step, const float* right,
                                    int64_t right_step, int64_t depth, int64_t row, int64_t column,
                                    const Finish& finish) {
    if (rows == Rows)
        multiply_block<Width, Rows, Vectors, Transposed>(left, left_step, right, right_step, depth, row, column, finish);
    else if constexpr (Rows > 1)
        multiply_rows<Width, Rows - 1, Vectors, Transposed>(rows, left, left_step, right, right_step, depth, row,
                                                            column, finish);
}

template <int Width, int Vectors, bool Transposed, class Finish>
PARAMIXER_INLINE void multiply_panel(const float* left, int64_t left_step, const float* right, int64_t right_step,
                                     int64_t rows, int64_t depth, int64_t column, const Finish& finish) {
    // Twelve accumulators, two columns and a factor fill 16 registers; eight are enough to keep the multipliers busy, and
    // a panel of one vector is rare, so it is not worth compiling for more row counts.
    constexpr int most = Vectors == 2 ? 6 : 8;
    const int64_t blocks = divide_up(rows, most);
    // Evenly sized blocks: a block of one or two rows would wait for its own sums.
    for (int64_t block = 0, row = 0; block < blocks; ++block) {
        const int64_t next = (block + 1) * rows / blocks;
        multiply_rows<Width, most, Vectors, Transposed>(next - row, left + (Transposed ? row : row * left_step),
                                                        left_step, right, right_step, depth, row, column, finish);
        row = next;
    }
}

// finish(row, column, vector) for every vector of left [rows, depth] times right [depth, vectors * Width].
template <int Width, bool Transposed, class Finish>
PARAMIXER_INLINE void multiply(const float* left, int64_t left_step, Columns right, int64_t rows, int64_t vectors,
                               int64_t depth, const Finish& finish) {
    int64_t v = 0;
    for (; v + 2 <= vectors; v += 2)
        multiply_panel<Width, 2, Transposed>(left, left_step, right.data + v * right.vector_step,
                                             right.step ? right.step : 2 * Width, rows, depth, v * Width, finish);
    if (v < vectors)
        multiply_panel<Width, 1, Transposed>(left, left_step, right.data + v * right.vector_step,
                                             right.step ? right.step : Width, rows, depth, v * Width, finish);
}

}  // namespace PARAMIXER_SET
}  // namespace paramixer
