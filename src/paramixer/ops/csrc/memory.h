// Uninitialized float memory, aligned to cache lines and backed by huge pages where the system offers them: a chain
// reads many distant rows at once and would otherwise wait for address translation. Freed blocks are cached for the
// next call, up to a limit: new memory from the system costs every training step a page fault per page.
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
    Buffer& operator=(Buffer&& other) noexcept;

    float* data() { return data_; }

private:
    size_t bytes_;
    float* data_;
};

// The most bytes of freed memory that are cached. By default an eighth of the machine's memory; 0 under a sanitizer,
// which has to see every block come and go.
size_t cache_limit();
void set_cache_limit(size_t bytes);

// The bytes cached now.
size_t cached_bytes();

// Returns all cached memory to the system, and says how many bytes that was.
size_t release_memory();

}  // namespace paramixer
