// SPDX-License-Identifier: Apache-2.0
#include "tests/exec/npy.h"

#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <string_view>

namespace driftscope::test {
namespace {

std::string file_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class Number>
Number number_at(std::string_view bytes, std::size_t offset) {
  Number value{};
  if (offset + sizeof value > bytes.size()) throw std::runtime_error("numpy file too short");
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <class Number>
std::vector<double> numbers(std::string_view bytes, std::size_t offset, std::size_t count) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<double>(number_at<Number>(bytes, offset + i * sizeof(Number)));
  }
  return values;
}

std::vector<std::int64_t> parse_shape(const std::string& header) {
  const std::size_t open = header.find('(', header.find("'shape'"));
  const std::size_t close = header.find(')', open);
  std::vector<std::int64_t> shape;
  std::size_t at = open + 1;
  while (at < close) {
    std::size_t used = 0;
    const std::string rest = header.substr(at, close - at);
    if (rest.find_first_of("0123456789") == std::string::npos) break;
    shape.push_back(std::stoll(rest, &used));
    at = header.find(',', at + used);
    if (at == std::string::npos || at > close) break;
    ++at;
  }
  return shape;
}

NumpyArray parse_npy(std::string_view bytes) {
  if (bytes.substr(0, 6) != "\x93NUMPY") throw std::runtime_error("not a .npy file");
  const auto length = number_at<std::uint16_t>(bytes, 8);
  const std::string header(bytes.substr(10, length));
  if (header.find("'fortran_order': False") == std::string::npos) {
    throw std::runtime_error("numpy file in column order");
  }
  NumpyArray array;
  array.shape = parse_shape(header);
  const auto count = static_cast<std::size_t>(std::accumulate(
      array.shape.begin(), array.shape.end(), std::int64_t{1}, std::multiplies<>()));
  const std::size_t data = 10U + length;
  if (header.find("'<f8'") != std::string::npos) {
    array.values = numbers<double>(bytes, data, count);
  } else if (header.find("'<f4'") != std::string::npos) {
    array.values = numbers<float>(bytes, data, count);
  } else if (header.find("'<i4'") != std::string::npos) {
    array.values = numbers<std::int32_t>(bytes, data, count);
  } else if (header.find("'<i8'") != std::string::npos) {
    array.values = numbers<std::int64_t>(bytes, data, count);
  } else {
    throw std::runtime_error("numpy type not read: " + header);
  }
  return array;
}

}  // namespace

NumpyArray read_npy(const std::filesystem::path& path) {
  const std::string bytes = file_bytes(path);
  return parse_npy(bytes);
}

// A .npz file is a zip archive; numpy.savez stores its members without compression.
std::map<std::string, NumpyArray> read_npz(const std::filesystem::path& path) {
  const std::string bytes = file_bytes(path);
  const std::size_t end = bytes.rfind("PK\x05\x06");
  if (end == std::string::npos) throw std::runtime_error("no zip directory in " + path.string());
  const auto entries = number_at<std::uint16_t>(bytes, end + 10);
  std::size_t entry = number_at<std::uint32_t>(bytes, end + 16);
  std::map<std::string, NumpyArray> arrays;
  for (int i = 0; i < entries; ++i) {
    if (number_at<std::uint16_t>(bytes, entry + 10) != 0) {
      throw std::runtime_error("compressed member in " + path.string());
    }
    const auto size = number_at<std::uint32_t>(bytes, entry + 20);
    const auto name_length = number_at<std::uint16_t>(bytes, entry + 28);
    const std::size_t tail = std::size_t{number_at<std::uint16_t>(bytes, entry + 30)} +
                             number_at<std::uint16_t>(bytes, entry + 32);
    const std::size_t local = number_at<std::uint32_t>(bytes, entry + 42);
    const std::size_t data = local + 30 + number_at<std::uint16_t>(bytes, local + 26) +
                             number_at<std::uint16_t>(bytes, local + 28);
    std::string name = bytes.substr(entry + 46, name_length);
    name.resize(name.size() - std::strlen(".npy"));
    arrays[name] = parse_npy(std::string_view(bytes).substr(data, size));
    entry += 46 + name_length + tail;
  }
  return arrays;
}

}  // namespace driftscope::test
