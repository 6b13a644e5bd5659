// Uninitialised float memory, aligned to cache lines and backed by huge pages where the system offers them: a chain
// reads many distant rows at once and would otherwise wait for address translation.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paramixer {

class Buffer {
public:
    explicit Buffer(int64_t floats = 0);  // throws std::bad_alloc
    ~Buffer();
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    float* data() { return data_; }

private:
    float* data_;
};

// For memory that is about to be written for the first time; a hint, without effect on what is in it.
void prefer_huge_pages(void* data, size_t bytes);

}  // namespace paramixer
