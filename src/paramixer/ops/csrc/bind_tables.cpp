// The part of the Python module that serves tables of n-grams. nanobind checks dtypes, dimensions and contiguity.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <tuple>

#include "bind_tables.h"
#include "memory.h"
#include "ngrams.h"
#include "table_rows.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace paramixer {
namespace {

template <class Scalar, int Dimensions>
struct ShapeOf;
template <class Scalar>
struct ShapeOf<Scalar, 1> {
    using Array = nb::ndarray<Scalar, nb::shape<-1>, nb::c_contig, nb::device::cpu>;
};
template <class Scalar>
struct ShapeOf<Scalar, 2> {
    using Array = nb::ndarray<Scalar, nb::shape<-1, -1>, nb::c_contig, nb::device::cpu>;
};
template <class Scalar>
struct ShapeOf<Scalar, 3> {
    using Array = nb::ndarray<Scalar, nb::shape<-1, -1, -1>, nb::c_contig, nb::device::cpu>;
};
template <class Scalar, int Dimensions>
using Array = typename ShapeOf<Scalar, Dimensions>::Array;

using Block = std::tuple<int64_t, int64_t, int64_t, bool, bool>;
using Step = std::tuple<double, double, double, double, double, double>;

void require(bool holds, const std::string& message) {
    if (!holds) throw nb::value_error(message.c_str());
}

template <class A>
int64_t size(const A& array, size_t dimension) {
    return static_cast<int64_t>(array.shape(dimension));
}

// The blocks lie one after the other in a table of `total` rows, and counted ones have a row for every n-gram.
std::vector<NgramBlock> check_blocks(const std::vector<Block>& blocks, int64_t vocabulary, int64_t total,
                                     const std::optional<Array<const int64_t, 1>>& letters) {
    require(vocabulary >= 1, "vocabulary must be at least 1, got " + std::to_string(vocabulary));
    std::vector<NgramBlock> checked;
    for (const auto& [order, start, rows, counted, of_words] : blocks) {
        require(order >= 1 && start >= 0 && rows >= 1 && rows <= total && start <= total - rows,
                "a block of order " + std::to_string(order) + " with rows " + std::to_string(start) + " + " +
                    std::to_string(rows) + " is not in a table of " + std::to_string(total) + " rows");
        require(!of_words || (letters && order <= longest_of_words && !counted),
                "a block of words needs letters, and has at most " + std::to_string(longest_of_words) +
                    " words and no counts");
        int64_t ngrams = 1;
        for (int64_t i = 0; counted && i < order; ++i)
            require(!__builtin_mul_overflow(ngrams, vocabulary, &ngrams) && ngrams <= rows,
                    std::to_string(rows) + " rows are too few to count n-grams of order " + std::to_string(order));
        checked.push_back({order, start, rows, counted, of_words});
    }
    require(!letters || size(*letters, 0) == vocabulary, "letters has not one number for each token of the vocabulary");
    return checked;
}

NgramSizes check_tokens(const Array<const int64_t, 2>& tokens, const std::optional<Array<const int64_t, 1>>& lengths,
                        const std::optional<Array<const int64_t, 1>>& letters, int64_t vocabulary) {
    const NgramSizes sizes = {size(tokens, 0), size(tokens, 1), vocabulary, lengths ? lengths->data() : nullptr,
                              letters ? letters->data() : nullptr};
    require(!lengths || size(*lengths, 0) == sizes.batch, "lengths has not one number for each sequence");
    for (int64_t b = 0; lengths && b < sizes.batch; ++b)
        require(sizes.lengths[b] >= 0 && sizes.lengths[b] <= sizes.length,
                "lengths[" + std::to_string(b) + "] is " + std::to_string(sizes.lengths[b]) + ", outside 0.." +
                    std::to_string(sizes.length));
    const int64_t wrong = find_wrong_token(sizes, tokens.data());
    require(wrong < 0, "token " + std::to_string(wrong < 0 ? 0 : tokens.data()[wrong]) +
                           " is outside the vocabulary, 0 to " + std::to_string(vocabulary - 1));
    return sizes;
}

void py_ngram_rows(const Array<const int64_t, 2>& tokens, const std::optional<Array<const int64_t, 1>>& lengths,
                   const std::optional<Array<const int64_t, 1>>& letters,
                   const std::optional<Array<const uint8_t, 1>>& admitted, const std::vector<Block>& blocks,
                   int64_t vocabulary, const Array<int32_t, 3>& rows) {
    const int64_t total = admitted ? size(*admitted, 0) : INT32_MAX;
    const std::vector<NgramBlock> checked = check_blocks(blocks, vocabulary, total, letters);
    const NgramSizes sizes = check_tokens(tokens, lengths, letters, vocabulary);
    require(size(rows, 0) == sizes.batch && size(rows, 1) == sizes.length &&
                size(rows, 2) == static_cast<int64_t>(checked.size()),
            "rows is not [batch, length, orders]");
    nb::gil_scoped_release release;
    ngram_rows(sizes, checked, tokens.data(), admitted ? admitted->data() : nullptr, rows.data());
}

void py_count_ngrams(const Array<const int64_t, 2>& tokens, const std::optional<Array<const int64_t, 1>>& lengths,
                     const std::optional<Array<const int64_t, 1>>& letters, const std::vector<Block>& blocks,
                     int64_t vocabulary, int32_t first, const Array<int32_t, 1>& seen,
                     const Array<int32_t, 1>& counts) {
    require(size(seen, 0) == size(counts, 0), "seen and counts have not the same size");
    const std::vector<NgramBlock> checked = check_blocks(blocks, vocabulary, size(counts, 0), letters);
    const NgramSizes sizes = check_tokens(tokens, lengths, letters, vocabulary);
    require(first >= 0 && sizes.batch <= INT32_MAX - first, "there are too many sequences to number them");
    nb::gil_scoped_release release;
    count_ngrams(sizes, checked, tokens.data(), first, seen.data(), counts.data());
}

void require_rows(const int32_t* rows, int64_t count, int64_t total) {
    int32_t largest = -1;
    for (int64_t i = 0; i < count; ++i) largest = std::max(largest, rows[i]);
    require(largest < total,
            "row " + std::to_string(largest) + " is outside the table, which has " + std::to_string(total) + " rows");
}

// A row may stand in one order only, or two threads would write to the same place of `seen`.
void py_occurrences(const Array<const int32_t, 3>& rows, const Array<int32_t, 1>& seen,
                    const Array<int32_t, 3>& counts) {
    const int64_t batch = size(rows, 0), length = size(rows, 1), orders = size(rows, 2);
    require(size(counts, 0) == batch && size(counts, 1) == length && size(counts, 2) == orders,
            "counts has not the shape of rows");
    require(length == 0 || batch < INT32_MAX / length, "there are too many tokens to number them");
    require_rows(rows.data(), batch * length * orders, size(seen, 0));
    nb::gil_scoped_release release;
    occurrences(batch, length, orders, rows.data(), seen.data(), counts.data());
}

using Weights = std::optional<Array<const float, 2>>;

const float* check_weights(const Weights& weights, const BagSizes& sizes) {
    require(!weights || (size(*weights, 0) == sizes.tokens && size(*weights, 1) == sizes.orders),
            "weights has not the shape of rows");
    return weights ? weights->data() : nullptr;
}

void py_bag(const Array<const int32_t, 2>& rows, const Weights& weights, const Array<const float, 2>& table,
            const Array<float, 2>& out) {
    const BagSizes sizes = {size(rows, 0), size(rows, 1), size(table, 1)};
    const float* const factors = check_weights(weights, sizes);
    require(size(out, 0) == sizes.tokens && size(out, 1) == sizes.width, "out is not [tokens, width]");
    require_rows(rows.data(), sizes.tokens * sizes.orders, size(table, 0));
    nb::gil_scoped_release release;
    bag(sizes, rows.data(), factors, table.data(), out.data());
}

// Memory of the cache as a tensor; it goes back there with the tensor.
template <class Scalar>
nb::ndarray<nb::pytorch, Scalar> as_tensor(Buffer&& memory, std::initializer_list<size_t> shape) {
    Buffer* const buffer = new Buffer(std::move(memory));
    nb::capsule owner(buffer, [](void* pointer) noexcept { delete static_cast<Buffer*>(pointer); });
    return {reinterpret_cast<Scalar*>(buffer->data()), shape, owner};
}

auto py_bag_backward(const Array<const float, 2>& grad, const Array<const int32_t, 2>& rows, const Weights& weights) {
    const BagSizes sizes = {size(rows, 0), size(rows, 1), size(grad, 1)};
    const float* const factors = check_weights(weights, sizes);
    require(size(grad, 0) == sizes.tokens, "grad and rows have not the same tokens");
    require(sizes.tokens < INT32_MAX && (sizes.orders == 0 || sizes.tokens < UINT32_MAX / sizes.orders),
            "a batch of so many tokens cannot be sorted; make it smaller");
    int64_t count = 0;
    Buffer distinct, sums;
    {
        nb::gil_scoped_release release;
        TokensByRow tokens(sizes, rows.data());
        count = tokens.distinct();
        distinct = Buffer(2 * round_up(count));
        sums = Buffer(round_up(count) * sizes.width);
        tokens.sum(grad.data(), factors, reinterpret_cast<int64_t*>(distinct.data()), sums.data());
    }
    const size_t n = static_cast<size_t>(count);
    return std::make_tuple(as_tensor<int64_t>(std::move(distinct), {n}),
                           as_tensor<float>(std::move(sums), {n, static_cast<size_t>(sizes.width)}));
}

void py_update_rows(const Array<float, 2>& table, const Array<float, 2>& mean, const Array<float, 2>& square,
                    const Array<const int64_t, 1>& rows, const Array<const float, 2>& grads, const Step& step) {
    const int64_t total = size(table, 0), width = size(table, 1), count = size(rows, 0);
    for (const Array<float, 2>* moment : {&mean, &square})
        require(size(*moment, 0) == total && size(*moment, 1) == width, "the moments have not the table's shape");
    require(size(grads, 0) == count && size(grads, 1) == width, "grads is not [rows, width]");
    int64_t previous = -1;
    bool ascending = true;
    for (int64_t i = 0; i < count; ++i) {
        ascending = ascending && rows.data()[i] > previous;
        previous = rows.data()[i];
    }
    require(ascending && previous < total, "rows are not ascending numbers below " + std::to_string(total));
    const auto& [decay, beta1, beta2, rate, scale, eps] = step;
    const AdamWStep numbers = {static_cast<float>(decay),     static_cast<float>(1 - beta1), static_cast<float>(beta2),
                               static_cast<float>(1 - beta2), static_cast<float>(rate),      static_cast<float>(scale),
                               static_cast<float>(eps)};
    nb::gil_scoped_release release;
    update_rows(count, width, rows.data(), grads.data(), numbers, {table.data(), mean.data(), square.data()});
}

}  // namespace

void bind_tables(nb::module_& module) {
    module.def("ngram_rows", py_ngram_rows, "tokens"_a.noconvert(), "lengths"_a.noconvert().none(),
               "letters"_a.noconvert().none(), "admitted"_a.noconvert().none(), "blocks"_a, "vocabulary"_a,
               "rows"_a.noconvert());
    module.def("count_ngrams", py_count_ngrams, "tokens"_a.noconvert(), "lengths"_a.noconvert().none(),
               "letters"_a.noconvert().none(), "blocks"_a, "vocabulary"_a, "first"_a, "seen"_a.noconvert(),
               "counts"_a.noconvert());
    module.def("occurrences", py_occurrences, "rows"_a.noconvert(), "seen"_a.noconvert(), "counts"_a.noconvert());
    module.def("bag", py_bag, "rows"_a.noconvert(), "weights"_a.noconvert().none(), "table"_a.noconvert(),
               "out"_a.noconvert());
    module.def("bag_backward", py_bag_backward, "grad"_a.noconvert(), "rows"_a.noconvert(),
               "weights"_a.noconvert().none());
    module.def("update_rows", py_update_rows, "table"_a.noconvert(), "mean"_a.noconvert(), "square"_a.noconvert(),
               "rows"_a.noconvert(), "grads"_a.noconvert(), "step"_a);
}

}  // namespace paramixer
