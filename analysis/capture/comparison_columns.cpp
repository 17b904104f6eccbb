// SPDX-License-Identifier: Apache-2.0
#include "analysis/capture/comparison_columns.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "analysis/capture/capture_layout.h"
#include "analysis/capture/crc32c.h"

namespace driftscope {
namespace {

using hdf5::checked;
using hdf5::Place;
using hdf5::Table;
using hdf5::TableShape;

constexpr std::string_view kSignal = "max_abs";
constexpr std::int32_t kNoToken = -1;

TableShape shape_of(hid_t type) {
  return {.type = type, .width = 0, .rows_per_chunk = 1024, .deflate = 0};
}

struct TokenColumn {
  const char* name;
  const char* long_name;
  std::int32_t (*value)(const StepComparison&);
};
constexpr std::array kTokenColumns{
    TokenColumn{"token_a", "token id emitted by A",
                [](const StepComparison& step) { return step.token_a.value; }},
    TokenColumn{"choice_b", "token id that B would emit after A's tokens",
                [](const StepComparison& step) { return step.choice_b.value; }},
    TokenColumn{
        "token_b", "token id emitted by the free lane b; -1 after its end",
        [](const StepComparison& step) { return step.token_b ? step.token_b->value : kNoToken; }},
    TokenColumn{"max_abs_token", "token id with the largest logit difference",
                [](const StepComparison& step) { return step.metrics.max_abs_token.value; }},
    TokenColumn{"flipped", "1 where choice_b differs from token_a",
                [](const StepComparison& step) { return step.flipped ? 1 : 0; }},
};

void create_column(const Place& place, hid_t group, const std::string& name, hid_t type,
                   std::string_view units, std::string_view long_name) {
  Table::create(place, group, name, shape_of(type));
  hdf5::Dataset column(
      checked(H5Dopen2(group, name.c_str(), H5P_DEFAULT), place, "H5Dopen2", name));
  hdf5::write_text_attribute(place, column.id(), "units", units);
  hdf5::write_text_attribute(place, column.id(), "long_name", long_name);
  hdf5::write_int_attribute(place, column.id(), std::string(layout::kCheckAttribute), 0);
  column.close(place, "H5Dclose", name);
}

template <class T, class Value>
void write_column(const Place& place, hid_t group, const std::string& name, hid_t type,
                  const Comparison& comparison, Value&& value) {
  std::vector<T> values;
  values.reserve(comparison.steps.size());
  for (const auto& step : comparison.steps) values.push_back(value(*step));
  Table table = Table::open(place, group, name, shape_of(type));
  table.append(values.data(), static_cast<std::int64_t>(values.size()));
  table.close();
  hdf5::Dataset column(
      checked(H5Dopen2(group, name.c_str(), H5P_DEFAULT), place, "H5Dopen2", name));
  hdf5::rewrite_int_attribute(place, column.id(), std::string(layout::kCheckAttribute),
                              crc32c_of(std::span<const T>(values)));
  column.close(place, "H5Dclose", name);
}

// A column and its check; empty where the file lacks it: a metric that the writing version did not
// know.
template <class T>
std::vector<T> read_column(const hdf5::SafeFile& file, const std::string& name, hid_t type) {
  const std::string path = "/comparison/" + name;
  if (!file.exists(path)) return {};
  const hdf5::Rows rows(file, path, {.type = type, .width = 0, .filters = false});
  if (rows.count() > file.size() / static_cast<std::int64_t>(sizeof(T))) {
    hdf5::throw_rule(file.place(), path, "more rows than the file can hold");
  }
  std::vector<T> values(static_cast<std::size_t>(rows.count()));
  rows.read(0, rows.count(), values.data());
  const hdf5::Dataset column = file.open_dataset(path);
  const std::int64_t stored =
      hdf5::read_int_attribute(file.place(), column.id(), std::string(layout::kCheckAttribute));
  if (stored != std::int64_t{crc32c_of(std::span<const T>(values))}) {
    hdf5::throw_rule(file.place(), path, "fails its check value; the file is damaged");
  }
  return values;
}

}  // namespace

void create_comparison_columns(const Place& place, hid_t file) {
  hdf5::Group group = hdf5::make_group(place, file, "/comparison");
  hdf5::write_text_attribute(place, group.id(), "NX_class", "NXdata");
  hdf5::write_text_attribute(place, group.id(), "signal", kSignal);
  hdf5::write_text_attribute(place, group.id(), "axes", "step");
  hdf5::write_text_attribute(place, group.id(), "title", "Difference of the logits, B minus A");
  create_column(place, group.id(), "step", H5T_STD_I64LE, "1", "step");
  for (const MetricSpec& metric : metric_registry()) {
    create_column(place, group.id(), std::string(metric.id), H5T_IEEE_F64LE, metric.unit,
                  metric.title);
  }
  for (const TokenColumn& column : kTokenColumns) {
    create_column(place, group.id(), column.name, H5T_STD_I32LE, "1", column.long_name);
  }
  group.close(place, "H5Gclose", "/comparison");
}

void write_comparison_columns(const Place& place, hid_t file, const Comparison& comparison) {
  hdf5::Group group(
      checked(H5Gopen2(file, "/comparison", H5P_DEFAULT), place, "H5Gopen2", "/comparison"));
  write_column<std::int64_t>(place, group.id(), "step", H5T_STD_I64LE, comparison,
                             [](const StepComparison& step) { return step.step; });
  const auto metrics = metric_registry();
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    write_column<double>(place, group.id(), std::string(metrics[i].id), H5T_IEEE_F64LE, comparison,
                         [i](const StepComparison& step) {
                           return i < step.metrics.values.size()
                                      ? step.metrics.values[i]
                                      : std::numeric_limits<double>::quiet_NaN();
                         });
  }
  for (const TokenColumn& column : kTokenColumns) {
    write_column<std::int32_t>(place, group.id(), column.name, H5T_STD_I32LE, comparison,
                               column.value);
  }
  group.close(place, "H5Gclose", "/comparison");
}

std::vector<StepMetrics> read_comparison_columns(const hdf5::SafeFile& file) {
  const auto steps = read_column<std::int64_t>(file, "step", H5T_STD_I64LE);
  const auto metrics = metric_registry();
  StepMetrics blank;
  blank.values.assign(metrics.size(), std::numeric_limits<double>::quiet_NaN());
  std::vector<StepMetrics> entries(steps.size(), blank);
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    const auto values = read_column<double>(file, std::string(metrics[i].id), H5T_IEEE_F64LE);
    const std::size_t rows = std::min(values.size(), entries.size());
    for (std::size_t row = 0; row < rows; ++row) entries[row].values[i] = values[row];
  }
  const auto tokens = read_column<std::int32_t>(file, "max_abs_token", H5T_STD_I32LE);
  const std::size_t rows = std::min(tokens.size(), entries.size());
  for (std::size_t row = 0; row < rows; ++row) entries[row].max_abs_token = TokenId{tokens[row]};
  return entries;
}

void verify_comparison_columns(const hdf5::SafeFile& file) {
  static_cast<void>(read_comparison_columns(file));
  for (const TokenColumn& column : kTokenColumns) {
    static_cast<void>(read_column<std::int32_t>(file, column.name, H5T_STD_I32LE));
  }
}

}  // namespace driftscope
