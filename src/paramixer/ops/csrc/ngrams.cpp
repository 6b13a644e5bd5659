#include "ngrams.h"

#include <algorithm>

namespace paramixer {
namespace {

// Odd, and their powers differ in all bits: the bases of tokens and of words.
constexpr uint64_t hash_base = 0x9E3779B97F4A7C15u, word_base = 0xD1342543DE82EF95u;

// SplitMix64; the upper 32 bits as a fraction of the block.
int64_t hash_to_row(uint64_t code, uint64_t rows) {
    code += hash_base;
    code = (code ^ (code >> 30)) * 0xBF58476D1CE4E5B9u;
    code = (code ^ (code >> 27)) * 0x94D049BB133111EBu;
    code ^= code >> 31;
    return static_cast<int64_t>(((code >> 32) * rows) >> 32);
}

int64_t length_of(const NgramSizes& sizes, int64_t sequence) {
    return sizes.lengths ? sizes.lengths[sequence] : sizes.length;
}

// visit(i, row) for the n-gram that ends at token i, for every i that has one. Its number in the base is rolled along:
// one token enters, one leaves. Modulo 2^64 that is exact.
template <bool Counted, class Visit>
void roll(const NgramBlock& block, uint64_t base, const int64_t* tokens, int64_t length, const Visit& visit) {
    const int64_t order = block.order;
    if (length < order) return;
    uint64_t power = 1, code = 0;
    for (int64_t i = 0; i < order; ++i) power *= base;
    for (int64_t i = 0; i + 1 < order; ++i) code = code * base + static_cast<uint64_t>(tokens[i]);
    for (int64_t i = order - 1; i < length; ++i) {
        const uint64_t leaves = i >= order ? static_cast<uint64_t>(tokens[i - order]) : 0;
        code = code * base + static_cast<uint64_t>(tokens[i]) - leaves * power;
        visit(i, block.start +
                     (Counted ? static_cast<int64_t>(code) : hash_to_row(code, static_cast<uint64_t>(block.rows))));
    }
}

// visit(i, row) for every token i that ends a word before which there are enough others. The number of an n-gram is
// that of its words in the base of words; one word enters, one leaves, whose number is kept until then.
template <class Visit>
void roll_words(const NgramBlock& block, const int64_t* letters, const int64_t* tokens, int64_t length,
                const Visit& visit) {
    const int64_t order = block.order;
    uint64_t last[longest_of_words] = {};
    uint64_t power = 1, code = 0, word = 0;
    for (int64_t i = 0; i < order; ++i) power *= word_base;
    int64_t words = 0;
    for (int64_t i = 0; i < length; ++i) {
        const int64_t letter = letters[tokens[i]];
        if (letter > 0) word = word * hash_base + static_cast<uint64_t>(letter);
        const bool ends = letter > 0 && (i + 1 == length || letters[tokens[i + 1]] <= 0);
        if (!ends) continue;
        uint64_t& oldest = last[words % order];
        code = code * word_base + word - oldest * power;
        oldest = word;
        word = 0;
        if (++words >= order) visit(i, block.start + hash_to_row(code, static_cast<uint64_t>(block.rows)));
    }
}

template <class Visit>
void visit_ngrams(const NgramBlock& block, const NgramSizes& sizes, const int64_t* tokens, int64_t length,
                  const Visit& visit) {
    if (block.of_words)
        roll_words(block, sizes.letters, tokens, length, visit);
    else if (block.counted)
        roll<true>(block, static_cast<uint64_t>(sizes.vocabulary), tokens, length, visit);
    else
        roll<false>(block, hash_base, tokens, length, visit);
}

}  // namespace

int64_t find_wrong_token(const NgramSizes& sizes, const int64_t* tokens) {
    const uint64_t vocabulary = static_cast<uint64_t>(sizes.vocabulary);
    for (int64_t sequence = 0; sequence < sizes.batch; ++sequence) {
        const int64_t* const own = tokens + sequence * sizes.length;
        // Negative tokens are the largest of all without their sign.
        uint64_t largest = 0;
        for (int64_t i = 0; i < length_of(sizes, sequence); ++i)
            largest = std::max(largest, static_cast<uint64_t>(own[i]));
        if (largest < vocabulary) continue;
        for (int64_t i = 0; i < length_of(sizes, sequence); ++i)
            if (static_cast<uint64_t>(own[i]) >= vocabulary) return sequence * sizes.length + i;
    }
    return -1;
}

void ngram_rows(const NgramSizes& sizes, const std::vector<NgramBlock>& blocks, const int64_t* tokens,
                const uint8_t* admitted, int32_t* rows) {
    const int64_t count = static_cast<int64_t>(blocks.size());
#pragma omp parallel for schedule(dynamic)
    for (int64_t sequence = 0; sequence < sizes.batch; ++sequence) {
        const int64_t length = length_of(sizes, sequence);
        int32_t* const own = rows + sequence * sizes.length * count;
        std::fill(own + length * count, own + sizes.length * count, -1);
        for (int64_t number = 0; number < count; ++number) {
            int32_t* const to = own + number;
            const bool of_words = blocks[number].of_words;
            for (int64_t i = 0; i < (of_words ? length : std::min(blocks[number].order - 1, length)); ++i)
                to[i * count] = -1;
            visit_ngrams(blocks[number], sizes, tokens + sequence * sizes.length, length, [=](int64_t i, int64_t row) {
                if (admitted) __builtin_prefetch(admitted + row);
                to[i * count] = static_cast<int32_t>(row);
            });
            // By now the flags are in the cache. Without a branch: which n-grams are admitted cannot be predicted.
            for (int64_t i = blocks[number].order - 1; admitted && !of_words && i < length; ++i)
                to[i * count] |= -static_cast<int32_t>(admitted[to[i * count]] == 0);
            for (int64_t i = 0; admitted && of_words && i < length; ++i)
                if (to[i * count] >= 0 && admitted[to[i * count]] == 0) to[i * count] = -1;
        }
    }
}

void occurrences(int64_t batch, int64_t length, int64_t orders, const int32_t* rows, int32_t* seen, int32_t* counts) {
    // The orders have rows of their own, so that threads never meet.
#pragma omp parallel for schedule(dynamic)
    for (int64_t order = 0; order < orders; ++order) {
        for (int64_t sequence = 0; sequence < batch; ++sequence) {
            const int64_t begin = sequence * length;
            for (int64_t i = begin; i < begin + length; ++i) {
                const int32_t row = rows[i * orders + order];
                counts[i * orders + order] = 0;
                if (row < 0) continue;
                // Where the row was first seen, counted from 1; in an earlier sequence or not at all is new.
                if (seen[row] <= begin) seen[row] = static_cast<int32_t>(i + 1);
                ++counts[(seen[row] - 1) * orders + order];
            }
        }
    }
}

void count_ngrams(const NgramSizes& sizes, const std::vector<NgramBlock>& blocks, const int64_t* tokens, int32_t first,
                  int32_t* seen, int32_t* counts) {
    // The orders have rows of their own, so that threads never meet.
#pragma omp parallel for schedule(dynamic)
    for (int64_t number = 0; number < static_cast<int64_t>(blocks.size()); ++number) {
        for (int64_t sequence = 0; sequence < sizes.batch; ++sequence) {
            const int32_t current = first + static_cast<int32_t>(sequence);
            visit_ngrams(blocks[number], sizes, tokens + sequence * sizes.length, length_of(sizes, sequence),
                         [&](int64_t, int64_t row) {
                             if (seen[row] == current) return;
                             seen[row] = current;
                             ++counts[row];
                         });
        }
    }
}

}  // namespace paramixer
