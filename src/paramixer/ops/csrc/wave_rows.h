// One of the caller's arrays as the waves of a chain see it: a wave's rows one after the other, sequence by sequence
// and head by head. Without heads that is the array itself. With heads it is a copy of the wave's part: a head's
// columns of the caller's rows lie so far apart that they would share a fraction of the caches' sets.
#pragma once

#include <cstring>

#include "chain_plan.h"

namespace paramixer {

class WaveRows {
public:
    // `rows` [batch, length, heads * width], or [batch, length, width] if all heads share it. It is written by `write`
    // alone.
    WaveRows(const ChainPlan& plan, const float* rows, int64_t width, bool shared = false)
        : plan_(plan),
          heads_(plan.sizes.heads),
          rows_(const_cast<float*>(rows)),
          width_(width),
          ld_(shared ? width : heads_ * width),
          shared_(shared),
          copy_(heads_ ? plan.most_rows * width : 0) {}

    float* begin(const Wave& wave) { return heads_ ? copy_.data() : rows_ + wave.row_begin * width_; }

    // With heads only: between the caller's rows and the wave's.
    void read(const Tile& tile, const Wave& wave) {
        const float* from = caller_rows(tile);
        float* to = wave_rows(tile, wave);
        for (int64_t t = 0; t < tile.count; ++t, from += ld_, to += width_) copy_row(from, to);
    }
    void write(const Tile& tile, const Wave& wave) {
        const float* from = wave_rows(tile, wave);
        float* to = caller_rows(tile);
        for (int64_t t = 0; t < tile.count; ++t, from += width_, to += ld_) copy_row(from, to);
    }

    // For rows that all heads share: the sum over the heads. Heads are added in their order, whatever wave they are in;
    // one thread does all heads of a wave for a tile.
    void write_sum(const Tile& tile, const Wave& wave) {
        if (tile.batch * plan_.sizes.length != wave.row_begin && tile.batch % heads_ != 0) return;
        const int64_t end = (wave.row_begin + wave.rows) / plan_.sizes.length;
        Tile each = tile;
        do {
            add(each, wave);
            ++each.batch;
        } while (each.batch % heads_ != 0 && each.batch < end);
    }

private:
    // Rows are so short that calls of memcpy would take as long as the copy.
    void copy_row(const float* from, float* to) const {
        int64_t i = 0;
        for (; i + 8 <= width_; i += 8) std::memcpy(to + i, from + i, 8 * sizeof(float));
        for (; i < width_; ++i) to[i] = from[i];
    }

    void add(const Tile& tile, const Wave& wave) {
        if (tile.batch % heads_ == 0) return write(tile, wave);
        const float* from = wave_rows(tile, wave);
        float* to = caller_rows(tile);
        for (int64_t t = 0; t < tile.count; ++t, from += width_, to += ld_)
            for (int64_t i = 0; i < width_; ++i) to[i] += from[i];
    }

    float* caller_rows(const Tile& tile) {
        const int64_t row = tile.batch / heads_ * plan_.sizes.length + tile.start;
        return rows_ + row * ld_ + (shared_ ? 0 : tile.batch % heads_ * width_);
    }
    float* wave_rows(const Tile& tile, const Wave& wave) {
        return copy_.data() + (tile.batch * plan_.sizes.length + tile.start - wave.row_begin) * width_;
    }

    const ChainPlan& plan_;
    const int64_t heads_;
    float* const rows_;
    const int64_t width_, ld_;
    const bool shared_;
    Buffer copy_;
};

}  // namespace paramixer
