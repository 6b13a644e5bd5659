// Uninitialised float memory, aligned to cache lines and backed by huge pages where the system offers them: a chain
// reads many distant rows at once and would otherwise wait for address translation. What is freed is kept for the next
// call, up to a limit: from the system, every training step would get its pages anew, one fault each.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paramixer {

class Buffer {
public:
    explicit Buffer(int64_t floats = 0);  // throws std::bad_alloc
    Buffer(Buffer&& other) noexcept;
    ~Buffer();
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    float* data() { return data_; }

private:
    size_t bytes_;
    float* data_;
};

// Whether freed memory is kept at all; under a sanitizer it is not.
bool keeps_memory();

}  // namespace paramixer
