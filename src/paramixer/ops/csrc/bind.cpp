// The Python module. Shapes, dtypes, contiguity, offsets and lengths are checked here, before any pointer is used.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <initializer_list>
#include <limits>
#include <optional>
#include <stdexcept>

#include "bind_tables.h"
#include "engine.h"
#include "memory.h"
#include "work_queue.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace paramixer {
namespace {

using Array = nb::ndarray<>;

[[noreturn]] void raise_value_error(const std::string& message) { throw nb::value_error(message.c_str()); }
[[noreturn]] void raise_type_error(const std::string& message) { throw nb::type_error(message.c_str()); }

using Shape = std::vector<int64_t>;

std::string to_text(const Shape& shape) {
    std::string out = "[";
    for (int64_t size : shape) out += (out.size() > 1 ? ", " : "") + std::to_string(size);
    return out + "]";
}

std::string shape_text(const Array& array) {
    std::string out = "[";
    for (size_t i = 0; i < array.ndim(); ++i) out += (i ? ", " : "") + std::to_string(array.shape(i));
    return out + "]";
}

bool is_contiguous(const Array& array) {
    int64_t stride = 1;
    for (size_t i = array.ndim(); i-- > 0;) {
        if (array.shape(i) > 1 && array.stride(i) != stride) return false;
        stride *= static_cast<int64_t>(array.shape(i));
    }
    return true;
}

void check_memory(const Array& array, const char* name) {
    if (array.device_type() != nb::device::cpu::value) raise_type_error(std::string(name) + " is not on the CPU");
    // An empty array may have any strides.
    if (array.size() > 0 && !is_contiguous(array))
        raise_value_error(std::string(name) + " of shape " + shape_text(array) +
                          " is not contiguous; pass it through .contiguous()");
}

float* check_floats(const Array& array, const char* name) {
    if (array.dtype() != nb::dtype<float>()) raise_type_error(std::string(name) + " is not float32");
    check_memory(array, name);
    return static_cast<float*>(array.data());
}

void check_shape(const Array& array, const char* name, const Shape& shape) {
    bool same = array.ndim() == shape.size();
    size_t i = 0;
    for (int64_t size : shape) same = same && static_cast<int64_t>(array.shape(i++)) == size;
    if (!same) raise_value_error(std::string(name) + " has shape " + shape_text(array) + ", not " + to_text(shape));
}

float* check_floats(const Array& array, const char* name, const Shape& shape) {
    check_shape(array, name, shape);
    return check_floats(array, name);
}

const int64_t* check_integers(const Array& array, const char* name) {
    if (array.dtype() != nb::dtype<int64_t>()) raise_type_error(std::string(name) + " is not int64");
    check_memory(array, name);
    return static_cast<const int64_t*>(array.data());
}

int64_t size_at(const Array& array, const char* name, size_t dimensions, size_t dimension) {
    if (array.ndim() != dimensions)
        raise_value_error(std::string(name) + " has shape " + shape_text(array) + ", not " +
                          std::to_string(dimensions) + " dimensions");
    return static_cast<int64_t>(array.shape(dimension));
}

void check_positive(const char* name, int64_t size) {
    if (size < 1) raise_value_error(std::string(name) + " must be at least 1, got " + std::to_string(size));
}

const int64_t* check_offsets(const Array& offsets, const Shape& shape) {
    check_shape(offsets, "offsets", shape);
    return check_integers(offsets, "offsets");
}

const int64_t* check_lengths(const std::optional<Array>& lengths, int64_t batch, int64_t length) {
    if (!lengths) return nullptr;
    if (lengths->ndim() != 1 || static_cast<int64_t>(lengths->shape(0)) != batch)
        raise_value_error("lengths has shape " + shape_text(*lengths) + ", not " + to_text({batch}));
    const int64_t* const data = check_integers(*lengths, "lengths");
    for (int64_t b = 0; b < batch; ++b)
        if (data[b] < 0 || data[b] > length)
            raise_value_error("lengths[" + std::to_string(b) + "] is " + std::to_string(data[b]) + ", outside 0.." +
                              std::to_string(length));
    return data;
}

void check_indexable(std::initializer_list<int64_t> sizes) {
    int64_t product = sizeof(float);
    for (int64_t size : sizes)
        if (__builtin_mul_overflow(product, size, &product))
            raise_value_error("an array of shape " + to_text(sizes) + " cannot be addressed");
}

// The channels of one of `heads` heads.
int64_t head_channels(const Array& values, int64_t heads) {
    check_positive("heads", heads);
    const int64_t channels = size_at(values, "values", 3, 2);
    check_positive("channels", channels);
    if (channels % heads != 0)
        raise_value_error(std::to_string(channels) + " channels cannot be divided among " + std::to_string(heads) +
                          " heads");
    return channels / heads;
}

MixSizes mix_sizes(const Array& weights, const Array& values, const std::optional<Array>& lengths, bool ring) {
    const bool heads = weights.ndim() == 4;
    const size_t dimensions = heads ? 4 : 3;
    MixSizes sizes;
    sizes.batch = size_at(weights, "weights", dimensions, 0);
    sizes.length = size_at(weights, "weights", dimensions, 1);
    sizes.heads = heads ? size_at(weights, "weights", 4, 2) : 1;
    sizes.links = size_at(weights, "weights", dimensions, dimensions - 1);
    sizes.channels = head_channels(values, sizes.heads);
    sizes.lengths = check_lengths(lengths, sizes.batch, sizes.length);
    sizes.ring = ring;
    check_positive("links", sizes.links);
    return sizes;
}

// Of the weights and the offsets of link_mix; [.., heads, links] with an axis of heads.
Shape weight_shape(const MixSizes& s, const Array& weights) {
    return weights.ndim() == 4 ? Shape{s.batch, s.length, s.heads, s.links} : Shape{s.batch, s.length, s.links};
}
Shape offset_shape(const MixSizes& s, const Array& weights) {
    return weights.ndim() == 4 ? Shape{s.heads, s.links} : Shape{s.links};
}

void py_link_mix(Array weights, Array values, Array offsets, std::optional<Array> lengths, bool ring, Array out) {
    const MixSizes s = mix_sizes(weights, values, lengths, ring);
    const float* const w = check_floats(weights, "weights");
    const float* const v = check_floats(values, "values", {s.batch, s.length, s.heads * s.channels});
    const int64_t* const o = check_offsets(offsets, offset_shape(s, weights));
    float* const result = check_floats(out, "out", {s.batch, s.length, s.heads * s.channels});
    nb::gil_scoped_release release;
    link_mix(s, w, v, o, result);
}

void py_link_mix_backward(Array grad, Array weights, Array values, Array offsets, std::optional<Array> lengths,
                          bool ring, Array dweights, Array dvalues) {
    const MixSizes s = mix_sizes(weights, values, lengths, ring);
    const float* const g = check_floats(grad, "grad", {s.batch, s.length, s.heads * s.channels});
    const float* const w = check_floats(weights, "weights");
    const float* const v = check_floats(values, "values", {s.batch, s.length, s.heads * s.channels});
    const int64_t* const o = check_offsets(offsets, offset_shape(s, weights));
    float* const dw = check_floats(dweights, "dweights", weight_shape(s, weights));
    float* const dv = check_floats(dvalues, "dvalues", {s.batch, s.length, s.heads * s.channels});
    nb::gil_scoped_release release;
    link_mix_backward(s, g, w, v, o, dw, dv);
}

Residual residual_of(const std::string& name) {
    if (name == "factor") return Residual::factor;
    if (name == "block") return Residual::block;
    if (name == "none") return Residual::none;
    raise_value_error("residual is '" + name + "', not 'factor', 'block' or 'none'");
}

// Ids of rows of a table, all below `rows`.
const int64_t* check_ids(const Array& ids, const char* name, int64_t rows) {
    const int64_t* const data = check_integers(ids, name);
    for (int64_t token = 0; token < static_cast<int64_t>(ids.size()); ++token)
        if (data[token] < 0 || data[token] >= rows)
            raise_value_error(std::string(name) + "[" + std::to_string(token) + "] is " + std::to_string(data[token]) +
                              ", outside 0.." + std::to_string(rows - 1));
    return data;
}

ChainSizes chain_sizes(const Array& inputs, const Array& values, const Array& w1, const Array& w2,
                       const std::optional<Array>& lengths, const std::string& residual, bool ring,
                       const std::optional<Array>& row_ids, int64_t checkpoint_every) {
    const bool heads = w1.ndim() == 4;
    const size_t dimensions = heads ? 4 : 3;
    ChainSizes s;
    s.heads = heads ? size_at(w1, "w1", 4, 0) : 0;
    s.batch = size_at(values, "values", 3, 0);
    s.length = size_at(values, "values", 3, 1);
    s.inputs = size_at(w1, "w1", dimensions, dimensions - 2);
    s.channels = head_channels(values, heads ? s.heads : 1);
    s.factors = size_at(w1, "w1", dimensions, dimensions - 3);
    s.hidden = size_at(w1, "w1", dimensions, dimensions - 1);
    s.links = size_at(w2, "w2", dimensions, dimensions - 1);
    s.lengths = check_lengths(lengths, s.batch, s.length);
    s.ring = ring;
    s.residual = residual_of(residual);
    s.checkpoint_every = checkpoint_every;
    s.table_rows = row_ids ? size_at(inputs, "inputs", 2, 0) : 0;
    if (row_ids) check_shape(*row_ids, "row_ids", {s.batch, s.length});
    s.row_ids = row_ids ? check_ids(*row_ids, "row_ids", s.table_rows) : nullptr;
    if (row_ids) check_positive("rows of the table", s.table_rows);
    if (row_ids && heads) raise_value_error("row_ids with heads are not supported; expand the table's rows");
    s.shares_inputs = !heads || size_at(inputs, "inputs", 3, 2) == s.inputs;
    check_positive("inputs' width", s.inputs);
    check_positive("factors", s.factors);
    check_positive("hidden", s.hidden);
    check_positive("links", s.links);
    if (checkpoint_every < 0)
        raise_value_error("checkpoint_every must not be negative, got " + std::to_string(checkpoint_every));
    check_indexable({s.factors, s.batch, s.length, s.channels});
    check_indexable({s.batch, s.length, s.links});
    check_indexable({s.factors, s.table_rows, s.links});
    if (heads) check_indexable({s.factors, s.batch, s.heads, s.length, s.channels + s.inputs + s.links});
    return s;
}

// The link inputs of the tokens, or of the table.
float* check_inputs(const ChainSizes& s, const Array& inputs, const char* name) {
    return s.row_ids ? check_floats(inputs, name, {s.table_rows, s.inputs})
                     : check_floats(inputs, name, {s.batch, s.length, s.inputs * (s.shares_inputs ? 1 : s.heads)});
}

// [batch, length, channels], those of all heads.
Shape value_shape(const ChainSizes& s) { return {s.batch, s.length, s.channels * (s.heads ? s.heads : 1)}; }

// [factors, ..] or [heads, factors, ..].
Shape parameter_shape(const ChainSizes& s, Shape sizes) {
    sizes.insert(sizes.begin(), s.factors);
    if (s.heads) sizes.insert(sizes.begin(), s.heads);
    return sizes;
}

Parameters check_parameters(const ChainSizes& s, const Array& w1, const Array& b1, const Array& w2, const Array& b2,
                            const Array& offsets) {
    return {check_floats(w1, "w1", parameter_shape(s, {s.inputs, s.hidden})),
            check_floats(b1, "b1", parameter_shape(s, {s.hidden})),
            check_floats(w2, "w2", parameter_shape(s, {s.hidden, s.links})),
            check_floats(b2, "b2", parameter_shape(s, {s.links})),
            check_offsets(offsets, parameter_shape(s, {s.links}))};
}

float* check_checkpoints(const ChainSizes& s, const std::optional<Array>& checkpoints) {
    const int64_t count = checkpoint_count(s);
    if (count > 0 && !checkpoints)
        raise_value_error("checkpoint_every is " + std::to_string(s.checkpoint_every) + ", but checkpoints is None");
    const Shape shape =
        s.heads ? Shape{count, s.batch, s.heads, s.length, s.channels} : Shape{count, s.batch, s.length, s.channels};
    return checkpoints ? check_floats(*checkpoints, "checkpoints", shape) : nullptr;
}

void py_paramix(Array inputs, Array values, Array w1, Array b1, Array w2, Array b2, Array offsets,
                std::optional<Array> lengths, const std::string& residual, bool ring, std::optional<Array> row_ids,
                int64_t checkpoint_every, Array out, std::optional<Array> checkpoints) {
    const ChainSizes s = chain_sizes(inputs, values, w1, w2, lengths, residual, ring, row_ids, checkpoint_every);
    const float* const x = check_inputs(s, inputs, "inputs");
    const float* const v = check_floats(values, "values", value_shape(s));
    const Parameters parameters = check_parameters(s, w1, b1, w2, b2, offsets);
    float* const result = check_floats(out, "out", value_shape(s));
    float* const stored = check_checkpoints(s, checkpoints);
    if (s.batch == 0 || s.length == 0) return;
    nb::gil_scoped_release release;
    paramix(s, x, v, parameters, result, stored);
}

void py_paramix_backward(Array grad, Array inputs, Array values, Array w1, Array b1, Array w2, Array b2, Array offsets,
                         std::optional<Array> lengths, const std::string& residual, bool ring,
                         std::optional<Array> row_ids, int64_t checkpoint_every, std::optional<Array> checkpoints,
                         Array dinputs, Array dvalues, Array dw1, Array db1, Array dw2, Array db2) {
    const ChainSizes s = chain_sizes(inputs, values, w1, w2, lengths, residual, ring, row_ids, checkpoint_every);
    if (checkpoint_every < 1)
        raise_value_error("checkpoint_every must be at least 1 in the backward pass, as it was in the forward pass");
    const ChainTensors tensors = {check_floats(grad, "grad", value_shape(s)), check_inputs(s, inputs, "inputs"),
                                  check_floats(values, "values", value_shape(s)), check_checkpoints(s, checkpoints)};
    const Parameters parameters = check_parameters(s, w1, b1, w2, b2, offsets);
    const ChainGradients gradients = {check_inputs(s, dinputs, "dinputs"),
                                      check_floats(dvalues, "dvalues", value_shape(s)),
                                      check_floats(dw1, "dw1", parameter_shape(s, {s.inputs, s.hidden})),
                                      check_floats(db1, "db1", parameter_shape(s, {s.hidden})),
                                      check_floats(dw2, "dw2", parameter_shape(s, {s.hidden, s.links})),
                                      check_floats(db2, "db2", parameter_shape(s, {s.links}))};
    nb::gil_scoped_release release;
    paramix_backward(s, tensors, parameters, gradients);
}

ChainSizes mlp_sizes(const Array& inputs, const Array& w1, const Array& w2, const std::optional<Array>& lengths) {
    ChainSizes s = {};
    s.batch = size_at(inputs, "inputs", 3, 0);
    s.length = size_at(inputs, "inputs", 3, 1);
    s.inputs = size_at(inputs, "inputs", 3, 2);
    s.hidden = size_at(w1, "w1", 2, 1);
    s.links = s.channels = size_at(w2, "w2", 2, 1);
    s.factors = 1;
    s.lengths = check_lengths(lengths, s.batch, s.length);
    check_positive("inputs' width", s.inputs);
    check_positive("hidden", s.hidden);
    check_positive("outputs", s.links);
    check_indexable({s.batch, s.length, s.links});
    return s;
}

Parameters check_layers(const ChainSizes& s, const Array& w1, const Array& b1, const Array& w2, const Array& b2) {
    return {check_floats(w1, "w1", {s.inputs, s.hidden}), check_floats(b1, "b1", {s.hidden}),
            check_floats(w2, "w2", {s.hidden, s.links}), check_floats(b2, "b2", {s.links}), nullptr};
}

void py_mlp(Array inputs, Array w1, Array b1, Array w2, Array b2, std::optional<Array> lengths, Array out) {
    const ChainSizes s = mlp_sizes(inputs, w1, w2, lengths);
    const float* const x = check_floats(inputs, "inputs");
    const Parameters parameters = check_layers(s, w1, b1, w2, b2);
    float* const result = check_floats(out, "out", {s.batch, s.length, s.links});
    nb::gil_scoped_release release;
    mlp(s, x, parameters, result);
}

void py_mlp_backward(Array grad, Array inputs, Array w1, Array b1, Array w2, Array b2, std::optional<Array> lengths,
                     Array dinputs, Array dw1, Array db1, Array dw2, Array db2) {
    const ChainSizes s = mlp_sizes(inputs, w1, w2, lengths);
    const float* const g = check_floats(grad, "grad", {s.batch, s.length, s.links});
    const float* const x = check_floats(inputs, "inputs");
    const Parameters parameters = check_layers(s, w1, b1, w2, b2);
    const ChainGradients gradients = {check_floats(dinputs, "dinputs", {s.batch, s.length, s.inputs}),
                                      nullptr,
                                      check_floats(dw1, "dw1", {s.inputs, s.hidden}),
                                      check_floats(db1, "db1", {s.hidden}),
                                      check_floats(dw2, "dw2", {s.hidden, s.links}),
                                      check_floats(db2, "db2", {s.links})};
    nb::gil_scoped_release release;
    mlp_backward(s, g, x, parameters, gradients);
}

void py_lookup_backward(Array grad, Array ids, Array dtable) {
    const int64_t rows = size_at(dtable, "dtable", 2, 0), channels = size_at(dtable, "dtable", 2, 1);
    const int64_t tokens = size_at(ids, "ids", 1, 0);
    const int64_t* const i = check_ids(ids, "ids", rows);
    const float* const g = check_floats(grad, "grad", {tokens, channels});
    float* const d = check_floats(dtable, "dtable");
    nb::gil_scoped_release release;
    lookup_backward({tokens, rows, channels}, i, g, d);
}

void py_dropout(Array values, double p, uint64_t seed, Array out) {
    if (!(p >= 0.0 && p <= 1.0)) raise_value_error("p must be in 0..1, got " + std::to_string(p));
    if (values.size() != out.size())
        raise_value_error("out has shape " + shape_text(out) + ", not " + shape_text(values));
    const float* const from = check_floats(values, "values");
    float* const to = check_floats(out, "out");
    const int64_t count = static_cast<int64_t>(values.size());
    nb::gil_scoped_release release;
    dropout(count, from, p, seed, to);
}

// A tensor in cached memory, which goes back to the cache when the tensor is gone.
nb::ndarray<nb::pytorch, float> py_empty(const std::vector<int64_t>& shape) {
    std::vector<size_t> sizes;
    int64_t floats = 1;
    for (int64_t size : shape) {
        if (size < 0 || __builtin_mul_overflow(floats, size, &floats) ||
            floats > std::numeric_limits<int64_t>::max() / 8)
            raise_value_error("a tensor of this shape cannot be addressed");
        sizes.push_back(static_cast<size_t>(size));
    }
    Buffer* const buffer = new Buffer(floats);
    nb::capsule owner(buffer, [](void* pointer) noexcept { delete static_cast<Buffer*>(pointer); });
    return {buffer->data(), sizes.size(), sizes.data(), owner};
}

nb::dict py_instruction_sets() {
    nb::dict sets;
    for (const auto& [name, runs] : instruction_sets()) sets[name.c_str()] = runs;
    return sets;
}

void py_use_instruction_set(const std::string& name) {
    if (use_instruction_set(name)) return;
    std::string known = "auto";
    for (const auto& [set, runs] : instruction_sets())
        if (runs) known += ", " + set;
    raise_value_error("instruction set '" + name + "' does not run on this machine; these do: " + known);
}

}  // namespace
}  // namespace paramixer

NB_MODULE(_engine, module) {
    using namespace paramixer;
    // clang's OpenMP runtime is not the one that torch brings, and knows nothing of torch.set_num_threads.
#if defined(__clang__) && defined(_OPENMP)
    module.attr("shares_torch_threads") = false;
#else
    module.attr("shares_torch_threads") = true;
#endif
    module.doc() = "Paramixer's CPU kernels on float32 arrays; outputs are preallocated by the caller.";
    module.def("link_mix", py_link_mix, "weights"_a, "values"_a, "offsets"_a, "lengths"_a.none(), "ring"_a, "out"_a);
    module.def("link_mix_backward", py_link_mix_backward, "grad"_a, "weights"_a, "values"_a, "offsets"_a,
               "lengths"_a.none(), "ring"_a, "dweights"_a, "dvalues"_a);
    module.def("paramix", py_paramix, "inputs"_a, "values"_a, "w1"_a, "b1"_a, "w2"_a, "b2"_a, "offsets"_a,
               "lengths"_a.none(), "residual"_a, "ring"_a, "row_ids"_a.none(), "checkpoint_every"_a, "out"_a,
               "checkpoints"_a.none());
    module.def("paramix_backward", py_paramix_backward, "grad"_a, "inputs"_a, "values"_a, "w1"_a, "b1"_a, "w2"_a,
               "b2"_a, "offsets"_a, "lengths"_a.none(), "residual"_a, "ring"_a, "row_ids"_a.none(),
               "checkpoint_every"_a, "checkpoints"_a.none(), "dinputs"_a, "dvalues"_a, "dw1"_a, "db1"_a, "dw2"_a,
               "db2"_a);
    module.def("mlp", py_mlp, "inputs"_a, "w1"_a, "b1"_a, "w2"_a, "b2"_a, "lengths"_a.none(), "out"_a);
    module.def("mlp_backward", py_mlp_backward, "grad"_a, "inputs"_a, "w1"_a, "b1"_a, "w2"_a, "b2"_a,
               "lengths"_a.none(), "dinputs"_a, "dw1"_a, "db1"_a, "dw2"_a, "db2"_a);
    module.def("lookup_backward", py_lookup_backward, "grad"_a, "ids"_a, "dtable"_a);
    module.def("dropout", py_dropout, "values"_a, "p"_a, "seed"_a, "out"_a);
    bind_tables(module);
    module.def("empty", py_empty, "shape"_a);
    module.def("cache_limit", &cache_limit);
    module.def("set_cache_limit", &set_cache_limit, "bytes"_a);
    module.def("cached_bytes", &cached_bytes);
    module.def("release_memory", &release_memory);
    module.def("max_threads", &max_threads);
    module.def("set_threads", &set_threads, "count"_a);
    module.def("instruction_sets", py_instruction_sets);
    module.def("instruction_set", &instruction_set);
    module.def("use_instruction_set", py_use_instruction_set, "name"_a);
}
