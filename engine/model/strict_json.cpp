// SPDX-License-Identifier: Apache-2.0
#include "engine/model/strict_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "engine/model/files.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using nlohmann::json;

// Builds the document while it counts the depth and compares the keys, which nlohmann's own
// builder does not.
class StrictBuilder final : public nlohmann::json_sax<json> {
 public:
  bool null() override { return add(json(nullptr)); }
  bool boolean(bool value) override { return add(json(value)); }
  bool number_integer(number_integer_t value) override { return add(json(value)); }
  bool number_unsigned(number_unsigned_t value) override { return add(json(value)); }
  bool number_float(number_float_t value, const string_t&) override { return add(json(value)); }
  bool string(string_t& value) override { return add(json(std::move(value))); }
  bool binary(binary_t&) override { return stop("binary values are not JSON"); }
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& value) override {
    auto& object = m_open.back()->get_ref<json::object_t&>();
    const auto [slot, inserted] = object.emplace(std::move(value), nullptr);
    if (!inserted) {
      return stop(fmt::format("key \"{}\" twice in one object",
                              escape_for_display(std::string_view(slot->first).substr(0, 100))));
    }
    m_slot = &slot->second;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& exception) override {
    m_position = position;
    m_detail = exception.what();
    m_reason = short_json_reason(m_detail);
    return false;
  }

  json m_document;
  std::string m_reason;
  std::string m_detail;
  std::size_t m_position = 0;

 private:
  bool stop(std::string reason) {
    m_reason = std::move(reason);
    return false;
  }

  json* place(json&& value) {
    if (m_open.empty()) {
      m_document = std::move(value);
      return &m_document;
    }
    if (m_open.back()->is_array()) {
      auto& array = m_open.back()->get_ref<json::array_t&>();
      array.push_back(std::move(value));
      return &array.back();
    }
    *m_slot = std::move(value);
    return m_slot;
  }

  bool add(json&& value) {
    place(std::move(value));
    return true;
  }

  bool open(json&& value) {
    if (m_open.size() == static_cast<std::size_t>(kMaxJsonDepth)) {
      return stop(fmt::format("nested deeper than {} levels", kMaxJsonDepth));
    }
    // The pointer stays good while the container is open: its parent grows only after.
    m_open.push_back(place(std::move(value)));
    return true;
  }

  bool close() {
    m_open.pop_back();
    return true;
  }

  std::vector<json*> m_open;
  json* m_slot = nullptr;
};

}  // namespace

JsonTextFault find_json_text_fault(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) return {0, "a byte order mark"};
  const std::size_t nul = text.find('\0');
  if (nul != std::string_view::npos) return {nul, "a NUL byte"};
  return {};
}

std::string short_json_reason(std::string_view library_message) {
  // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while
  // parsing value - invalid literal; last read: '...'"
  std::string_view rest = library_message;
  const std::size_t bracket = rest.find("] ");
  if (bracket != std::string_view::npos) rest.remove_prefix(bracket + 2);
  if (rest.starts_with("parse error at ")) {
    const std::size_t colon = rest.find(": ");
    if (colon != std::string_view::npos) rest.remove_prefix(colon + 2);
  }
  rest = rest.substr(0, rest.find("; last read"));
  return escape_for_display(rest.substr(0, 160));
}

Result<json> parse_strict_json(std::string_view text, std::string_view name) {
  const JsonTextFault fault = find_json_text_fault(text);
  if (!fault.what.empty()) {
    return fail(ErrorKind::malformed, fmt::format("{}: not valid JSON: {} at byte {}; save it as "
                                                  "plain UTF-8 JSON",
                                                  name, fault.what, fault.offset));
  }
  StrictBuilder builder;
  if (json::sax_parse(text.begin(), text.end(), &builder)) return std::move(builder.m_document);
  const std::string where =
      builder.m_position > 0 ? fmt::format(" at byte {}", builder.m_position - 1) : std::string();
  return fail(ErrorKind::malformed,
              fmt::format("{}: not valid JSON{}: {}; fix or download the file again", name, where,
                          builder.m_reason),
              builder.m_detail);
}

Result<json> read_strict_json(const std::filesystem::path& path, std::size_t max_bytes) {
  auto text = read_whole_file(path, max_bytes);
  if (!text) return tl::unexpected(std::move(text.error()));
  return parse_strict_json(*text, display_path(path));
}

}  // namespace driftscope
