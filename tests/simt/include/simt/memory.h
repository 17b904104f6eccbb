// SPDX-License-Identifier: Apache-2.0
// Checked pointers. On a GPU both are plain pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "simt/faults.h"

namespace simt {

struct Buffer {  // one allocation of device memory
  const char* begin = nullptr;
  const char* end = nullptr;
};
// The allocation that holds `address`; an empty one (and a fault on use) where there is none.
[[nodiscard]] Buffer buffer_of(const void* address);
[[noreturn]] void report_outside(const void* address, std::size_t bytes, const Buffer& buffer);

// A pointer to device memory that knows its allocation: an access outside of it is a fault.
template <class T>
class Global {
 public:
  Global() = default;
  Global(std::nullptr_t) {}
  explicit Global(T* pointer) : m_pointer(pointer), m_buffer(buffer_of(pointer)) {}
  Global(T* pointer, Buffer buffer) : m_pointer(pointer), m_buffer(buffer) {}
  template <class U>
  requires std::is_convertible_v<U*, T*> Global(const Global<U>& other)
      : m_pointer(other.raw()), m_buffer(other.buffer()) {}

  template <class Index>
  std::add_lvalue_reference_t<T> operator[](Index index) const {
    T* const element = m_pointer + static_cast<std::ptrdiff_t>(index);
    const auto* const bytes = reinterpret_cast<const char*>(element);
    if (bytes < m_buffer.begin || bytes + sizeof(T) > m_buffer.end) {
      report_outside(element, sizeof(T), m_buffer);
    }
    return *element;
  }
  std::add_lvalue_reference_t<T> operator*() const { return (*this)[0]; }
  template <class Index>
  Global operator+(Index offset) const {
    return {m_pointer + static_cast<std::ptrdiff_t>(offset), m_buffer};
  }
  friend bool operator==(const Global& a, std::nullptr_t) { return a.m_pointer == nullptr; }
  [[nodiscard]] T* raw() const { return m_pointer; }
  [[nodiscard]] Buffer buffer() const { return m_buffer; }

 private:
  T* m_pointer = nullptr;
  Buffer m_buffer;
};

// Shared memory of the block in hand, in words of four bytes. Reading a word that no thread of the
// block has written, an index outside of the array, and a word touched by two threads without a
// barrier between are faults.
void read_shared(std::uint32_t word, std::uint32_t words, void* target);
void write_shared(std::uint32_t word, std::uint32_t words, const void* source);
[[nodiscard]] std::uint32_t static_shared_word(const void* site, std::uint32_t words);
[[nodiscard]] std::uint32_t dynamic_shared_word(std::size_t byte_offset);
[[nodiscard]] std::uint32_t dynamic_shared_end();
[[noreturn]] void report_shared_outside(std::int64_t index, std::int64_t count);

template <class T>
class Shared {
  static_assert(sizeof(T) % 4 == 0 && std::is_trivially_copyable_v<T>);
  static constexpr std::uint32_t kWords = sizeof(T) / 4;

 public:
  class Reference {
   public:
    explicit Reference(std::uint32_t word) : m_word(word) {}
    operator T() const {  // NOLINT(google-explicit-constructor): reads like an element
      T value;
      read_shared(m_word, kWords, &value);
      return value;
    }
    Reference& operator=(const T& value) {
      write_shared(m_word, kWords, &value);
      return *this;
    }
    Reference& operator=(const Reference& other) { return *this = static_cast<T>(other); }
    Reference(const Reference&) = default;

   private:
    std::uint32_t m_word;
  };

  Shared(std::uint32_t begin, std::uint32_t end) : m_first(begin), m_begin(begin), m_end(end) {}
  template <class Index>
  Reference operator[](Index index) const {
    const std::int64_t word =
        std::int64_t{m_first} + static_cast<std::int64_t>(index) * std::int64_t{kWords};
    if (word < m_begin || word + kWords > m_end) {
      report_shared_outside((word - m_begin) / kWords, (m_end - m_begin) / kWords);
    }
    return Reference(static_cast<std::uint32_t>(word));
  }
  template <class Index>
  Shared operator+(Index offset) const {
    Shared moved = *this;
    moved.m_first += static_cast<std::int64_t>(offset) * std::int64_t{kWords};
    return moved;
  }

 private:
  std::int64_t m_first;
  std::int64_t m_begin;
  std::int64_t m_end;
};

template <class T>
Shared<T> static_shared(const void* site, std::size_t count) {
  const auto words = static_cast<std::uint32_t>(count * sizeof(T) / 4);
  const std::uint32_t begin = static_shared_word(site, words);
  return {begin, begin + words};
}
// `count` elements from `byte_offset` of the launch's dynamic shared memory.
template <class T>
Shared<T> dynamic_shared(std::size_t byte_offset, std::size_t count) {
  const std::uint32_t begin = dynamic_shared_word(byte_offset);
  const auto end = begin + static_cast<std::uint32_t>(count * sizeof(T) / 4);
  if (end > dynamic_shared_end()) {
    report_shared_outside(
        static_cast<std::int64_t>(count) - 1,
        (std::int64_t{dynamic_shared_end()} - begin) * 4 / std::int64_t{sizeof(T)});
  }
  return {begin, end};
}

}  // namespace simt
