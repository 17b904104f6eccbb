// SPDX-License-Identifier: Apache-2.0
// Decode and prefill of a whole model, as shares of what the machine can do.
//
//   model_bench make FOLDER [0.5B|1B|15M]   writes a synthetic checkpoint
//   model_bench run FOLDER [--threads 1,2] [--prefill 512] [--decode 32] [--rounds 3]
//                          [--storage copied|mapped] [--quantisation none,int8_w8a16,…]
//                          [--set KNOB=VALUE]… [--csv FILE]
//   model_bench cost FOLDER [the same]   what matmul_policy=invariant costs, at one row and at many
//
// One row per quantisation and number of threads. --set weight_dtype and lm_head_dtype choose what
// is not quantised. Decode is held against the memory read rate (every weight is read once a
// token), prefill against the f32 multiply-add rate and, where the CPU has it, that of the bf16 dot
// product; all are measured between the rounds. Medians of the rounds.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/backend/host/host_weights.h"
#include "engine/config/knob.h"
#include "engine/exec/backend_factory.h"
#include "engine/exec/batch_engine.h"
#include "kernels/quant/quantise.h"
#include "tests/bench/matmul_bench_limits.h"
#include "tests/bench/synthetic_checkpoint.h"

namespace driftscope::bench {
namespace {

struct Options {
  std::string folder;
  std::vector<int> threads{1, 2};
  std::int64_t prefill = 512;
  std::int64_t decode = 32;
  int rounds = 3;
  std::optional<WeightStorage> storage;
  RunConfig config;
  std::vector<std::string> quantisations;  // empty: as the configuration says
  std::string csv;
};

struct Measured {
  double prefill_tokens_per_s = 0.0;
  double decode_tokens_per_s = 0.0;
  double read_bytes_per_s = 0.0;
  double flops_per_s = 0.0;
  double dots_per_s = 0.0;     // 0: the CPU has none
  double share_of_read = 0.0;  // medians of the rounds' ratios
  double share_of_flops = 0.0;
  double share_of_dots = 0.0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::size_t held_size(WeightDtype wanted, Dtype stored) {
  switch (wanted) {
    case WeightDtype::checkpoint:
      return dtype_size(stored);
    case WeightDtype::f32:
      return 4;
    case WeightDtype::f16:
    case WeightDtype::bf16:
      return 2;
  }
  return dtype_size(stored);
}

// Bytes of a matrix as the configuration holds it, scales and zero points included.
double held_bytes(const TensorView& tensor, const std::optional<QuantSpec>& spec,
                  WeightDtype dtype) {
  if (!spec) {
    return static_cast<double>(tensor.elements()) *
           static_cast<double>(held_size(dtype, tensor.dtype));
  }
  const QuantLayout layout = quant_layout(*spec, tensor.shape[0], tensor.shape[1]);
  return static_cast<double>(layout.code_bytes + layout.scale_count * sizeof(float) +
                             layout.zero_bytes);
}

// Bytes of weights that one decode step reads: all but the embedding's other rows, and the LM head.
double bytes_per_token(const ModelCheckpoint& checkpoint, const RunConfig& config) {
  const auto spec = quant_spec(config);
  double bytes = held_bytes(checkpoint.lm_head(), config.quantise_lm_head ? spec : std::nullopt,
                            config.lm_head_dtype);
  for (std::int64_t i = 0; i < checkpoint.description().layers; ++i) {
    const LayerTensors& layer = checkpoint.layer(i);
    for (const TensorView* tensor :
         {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down}) {
      bytes += held_bytes(*tensor, spec, config.weight_dtype);
    }
  }
  return bytes;
}

// Multiply-adds of the layers' projections count two each; a prefill computes one row of logits.
double operations_per_prefill(const ModelCheckpoint& checkpoint, std::int64_t tokens) {
  double weights = 0.0;
  for (std::int64_t i = 0; i < checkpoint.description().layers; ++i) {
    const LayerTensors& layer = checkpoint.layer(i);
    for (const TensorView* tensor :
         {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down}) {
      weights += static_cast<double>(tensor->elements());
    }
  }
  return 2 * (weights * static_cast<double>(tokens) +
              static_cast<double>(checkpoint.lm_head().elements()));
}

std::vector<TokenId> prompt_of(std::int64_t tokens, std::int64_t vocabulary) {
  std::vector<TokenId> prompt;
  for (std::int64_t i = 0; i < tokens; ++i) {
    prompt.push_back(TokenId{static_cast<std::int32_t>(i * 7919 % vocabulary)});
  }
  return prompt;
}

template <class Value>
Value value_or_exit(Result<Value> result) {
  if (result) return *std::move(result);
  fmt::print(stderr, "model_bench: {}\n", result.error().message);
  std::exit(exit_code(result.error().kind));
}

// One configuration of one model, ready to run.
struct Side {
  std::shared_ptr<Backend> backend;
  std::unique_ptr<BatchEngine> engine;
};

Side open_side(const std::shared_ptr<const ModelCheckpoint>& checkpoint, const Options& options,
               const RunConfig& config, BackendFactory& factory) {
  Side side;
  side.backend = value_or_exit(factory.open(checkpoint, config));
  side.engine = value_or_exit(BatchEngine::create(side.backend, config, {}, TapLevel::logits,
                                                  options.prefill + options.decode));
  return side;
}

// Seconds of a prefill, and of a decode step after it.
struct Times {
  double prefill;
  double step;
};

Times time_side(const Side& side, const Options& options, const std::vector<TokenId>& prompt) {
  const double before = now_seconds();
  value_or_exit(side.engine->prefill(prompt, {}));
  const double middle = now_seconds();
  for (std::int64_t i = 0; i < options.decode; ++i) {
    value_or_exit(side.engine->decode(prompt[static_cast<std::size_t>(i % options.prefill)], {}));
  }
  return {middle - before, (now_seconds() - middle) / static_cast<double>(options.decode)};
}

Measured measure(const std::shared_ptr<const ModelCheckpoint>& checkpoint, const Options& options,
                 const RunConfig& config, BackendFactory& factory, const HugeBuffer& memory) {
  const auto threads = static_cast<int>(config.threads);
  const Side side = open_side(checkpoint, options, config, factory);
  const auto prompt = prompt_of(options.prefill, checkpoint->description().vocabulary);
  const double bytes = bytes_per_token(*checkpoint, config);
  const double operations = operations_per_prefill(*checkpoint, options.prefill);
  ThreadPool pool(threads);
  std::vector<double> prefill, decode, read, flops, dots, of_read, of_flops, of_dots;
  for (int round = -1; round < options.rounds; ++round) {  // the first only warms up
    const Times times = time_side(side, options, prompt);
    if (round < 0) continue;
    prefill.push_back(static_cast<double>(options.prefill) / times.prefill);
    decode.push_back(1.0 / times.step);
    read.push_back(memory_read_rate(memory, pool));
    flops.push_back(fma_rate(pool));
    dots.push_back(bf16_dot_rate(pool));
    of_read.push_back(bytes / times.step / read.back());
    of_flops.push_back(operations / times.prefill / flops.back());
    of_dots.push_back(dots.back() > 0 ? operations / times.prefill / dots.back() : 0.0);
  }
  if (threads == options.threads.front()) fmt::print("{}\n", side.backend->storage_note());
  return {median(prefill), median(decode),  median(read),     median(flops),
          median(dots),    median(of_read), median(of_flops), median(of_dots)};
}

std::vector<RunConfig> configurations(const Options& options) {
  std::vector<RunConfig> result;
  const auto add = [&](RunConfig config) {
    for (const int threads : options.threads) {
      config.threads = threads;
      result.push_back(config);
    }
  };
  if (options.quantisations.empty()) add(options.config);
  for (const std::string& quantisation : options.quantisations) {
    RunConfig config = options.config;
    if (auto set = set_knob(config, "quantisation", quantisation); !set) {
      fmt::print(stderr, "model_bench: {}\n", set.error().message);
      std::exit(2);
    }
    add(config);
  }
  return result;
}

void run(const Options& options) {
  const auto checkpoint = value_or_exit(ModelCheckpoint::open(options.folder));
  BackendFactory factory;
  factory.host().set_storage(options.storage);
  const HugeBuffer memory(std::size_t{512} << 20U);
  std::memset(memory.data(), 1, memory.size());  // untouched pages are one page of zeros
  std::ofstream csv;
  if (!options.csv.empty()) csv.open(options.csv);
  if (csv) {
    csv << "quantisation,threads,prefill_tokens_per_s,share_of_fma,share_of_bf16_dot,"
           "decode_tokens_per_s,share_of_read\n";
  }
  const double operations = operations_per_prefill(*checkpoint, options.prefill);
  fmt::print("{:>15} {:>7} {:>11} {:>8} {:>8} {:>8} {:>8} {:>8} {:>10} {:>6} {:>6} {:>8}\n",
             "quantisation", "threads", "prefill t/s", "GFLOP/s", "fma", "of fma", "bf16 dot",
             "of dot", "decode t/s", "GB/s", "read", "of read");
  for (const RunConfig& config : configurations(options)) {
    const std::string quantisation = get_knob(config, *find_knob("quantisation"));
    const double bytes = bytes_per_token(*checkpoint, config);
    const Measured m = measure(checkpoint, options, config, factory, memory);
    const double rate = operations * m.prefill_tokens_per_s / static_cast<double>(options.prefill);
    fmt::print(
        "{:>15} {:>7} {:>11.1f} {:>8.1f} {:>8.1f} {:>7.1f}% {:>8.1f} {:>7.1f}% {:>10.2f} {:>6.1f} "
        "{:>6.1f} {:>7.1f}%\n",
        quantisation, config.threads, m.prefill_tokens_per_s, rate * 1e-9, m.flops_per_s * 1e-9,
        100 * m.share_of_flops, m.dots_per_s * 1e-9, 100 * m.share_of_dots, m.decode_tokens_per_s,
        bytes * m.decode_tokens_per_s * 1e-9, m.read_bytes_per_s * 1e-9, 100 * m.share_of_read);
    std::fflush(stdout);
    if (csv) {
      csv << fmt::format("{},{},{},{},{},{},{}\n", quantisation, config.threads,
                         m.prefill_tokens_per_s, m.share_of_flops, m.share_of_dots,
                         m.decode_tokens_per_s, m.share_of_read);
    }
  }
}

// Invariant against shape_dependent, in turns, so that a busy neighbour slows both.
void cost(const Options& options) {
  const auto checkpoint = value_or_exit(ModelCheckpoint::open(options.folder));
  BackendFactory factory;
  factory.host().set_storage(options.storage);
  const auto prompt = prompt_of(options.prefill, checkpoint->description().vocabulary);
  fmt::print("{:>15} {:>7} {:>5} {:>13} {:>19} {:>8}\n", "quantisation", "threads", "rows",
             "invariant ms", "shape_dependent ms", "cost");
  for (RunConfig config : configurations(options)) {
    config.matmul_policy = PlanPolicy::invariant;
    const Side a = open_side(checkpoint, options, config, factory);
    config.matmul_policy = PlanPolicy::shape_dependent;
    const Side b = open_side(checkpoint, options, config, factory);
    std::vector<double> a_prefill, b_prefill, a_step, b_step, prefill_ratio, step_ratio;
    for (int round = -1; round < options.rounds; ++round) {
      const Times x = time_side(a, options, prompt);
      const Times y = time_side(b, options, prompt);
      if (round < 0) continue;
      a_prefill.push_back(x.prefill);
      b_prefill.push_back(y.prefill);
      a_step.push_back(x.step);
      b_step.push_back(y.step);
      prefill_ratio.push_back(x.prefill / y.prefill);
      step_ratio.push_back(x.step / y.step);
    }
    const auto row = [&](std::int64_t rows, const auto& own, const auto& other, const auto& ratio) {
      fmt::print("{:>15} {:>7} {:>5} {:>13.2f} {:>19.2f} {:>+7.1f}%\n",
                 get_knob(config, *find_knob("quantisation")), config.threads, rows,
                 1e3 * median(own), 1e3 * median(other), 100 * (median(ratio) - 1));
      std::fflush(stdout);
    };
    row(1, a_step, b_step, step_ratio);
    row(options.prefill, a_prefill, b_prefill, prefill_ratio);
  }
}

[[noreturn]] void usage() {
  fmt::print(stderr,
             "model_bench make FOLDER [0.5B|1B|15M]\n"
             "model_bench run|cost FOLDER [--threads 1,2] [--prefill N] [--decode N] [--rounds N]\n"
             "            [--storage copied|mapped] [--quantisation NAME,NAME] "
             "[--set KNOB=VALUE]...\n"
             "            [--csv FILE] [--cpu-clock]\n");
  std::exit(2);
}

std::int64_t number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1) usage();
  return value;
}

std::vector<std::string> list(const std::string& text) {
  std::vector<std::string> values;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    values.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return values;
}

std::vector<int> number_list(const std::string& text) {
  std::vector<int> values;
  for (const std::string& part : list(text)) values.push_back(static_cast<int>(number(part)));
  return values;
}

Options parse(const std::vector<std::string>& arguments) {
  Options options;
  options.folder = arguments[1];
  for (std::size_t i = 2; i < arguments.size(); ++i) {
    if (arguments[i] == "--cpu-clock") {
      use_cpu_clock();
      continue;
    }
    if (i + 1 == arguments.size()) usage();
    const std::string& flag = arguments[i];
    const std::string& value = arguments[++i];
    if (flag == "--threads") {
      options.threads = number_list(value);
    } else if (flag == "--prefill") {
      options.prefill = number(value);
    } else if (flag == "--decode") {
      options.decode = number(value);
    } else if (flag == "--rounds") {
      options.rounds = static_cast<int>(number(value));
    } else if (flag == "--storage") {
      options.storage = value == "mapped" ? WeightStorage::mapped : WeightStorage::copied;
    } else if (flag == "--quantisation") {
      options.quantisations = list(value);
    } else if (flag == "--csv") {
      options.csv = value;
    } else if (flag == "--set") {
      if (auto set = set_knob_assignment(options.config, value); !set) {
        fmt::print(stderr, "model_bench: {}\n", set.error().message);
        std::exit(2);
      }
    } else {
      usage();
    }
  }
  return options;
}

}  // namespace
}  // namespace driftscope::bench

int main(int argc, char** argv) {
  using namespace driftscope::bench;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() < 2) usage();
  if (arguments[0] == "make") {
    SyntheticShape shape = kHalfBillion;
    for (const SyntheticShape& other : {kOneBillion, kSmall}) {
      if (arguments.size() > 2 && arguments[2] == std::string_view(other.name)) shape = other;
    }
    const auto done = write_synthetic_checkpoint(arguments[1], shape);
    if (done) return 0;
    fmt::print(stderr, "model_bench: {}\n", done.error().message);
    return driftscope::exit_code(done.error().kind);
  }
  if (arguments[0] != "run" && arguments[0] != "cost") usage();
  const Options options = parse(arguments);
  if (arguments[0] == "run") {
    run(options);
  } else {
    cost(options);
  }
  return 0;
}
