// The table rows of n-grams of tokens. As in engine.h nothing throws but std::bad_alloc.
#pragma once

#include <cstdint>
#include <vector>

namespace paramixer {

// The rows of one order: numbers of n-grams where all of them fit, else hashes. N-grams are of tokens or of words.
struct NgramBlock {
    int64_t order, start, rows;
    bool counted, of_words;
};

// The most words of an n-gram; of tokens there is no limit.
constexpr int64_t longest_of_words = 64;

struct NgramSizes {
    int64_t batch, length, vocabulary;
    const int64_t* lengths;  // [batch], each 0..length; null: all are `length`
    const int64_t* letters;  // [vocabulary], above 0 for tokens inside of words; null without blocks of words
};

// The position of the first token that is outside the vocabulary; -1 if there is none.
int64_t find_wrong_token(const NgramSizes& sizes, const int64_t* tokens);

// rows [batch, length, blocks] = the row of the n-gram that ends at the token; -1 for none, or if `admitted` (null, or
// one byte per row of the table) is 0 there. All tokens are in the vocabulary.
void ngram_rows(const NgramSizes& sizes, const std::vector<NgramBlock>& blocks, const int64_t* tokens,
                const uint8_t* admitted, int32_t* rows);

// counts [batch, length, orders] = how often each of rows occurs in its sequence; 0 for -1, and where a row occurred
// before. The orders have rows of their own; `seen` has a zero for each row of the table, and all rows are in it. The
// batch has fewer than 2^31 tokens.
void occurrences(int64_t batch, int64_t length, int64_t orders, const int32_t* rows, int32_t* seen, int32_t* counts);

// Adds to `counts` the number of sequences in which each row of the table occurs. `seen` holds the last
// sequence of each row; this batch has those from `first` on.
void count_ngrams(const NgramSizes& sizes, const std::vector<NgramBlock>& blocks, const int64_t* tokens, int32_t first,
                  int32_t* seen, int32_t* counts);

}  // namespace paramixer
