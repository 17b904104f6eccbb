// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "analysis/probe/probe_events.h"
#include "analysis/probe/redaction.h"
#include "analysis/report/events.h"
#include "app/cli/command.h"
#include "app/cli/experiment.h"
#include "app/cli/interrupt.h"
#include "app/cli/vendor_input.h"
#include "app/probe/prober.h"
#include "kernels/base/display_text.h"

namespace driftscope::cli {
namespace {

constexpr int kInconclusive = 3;
constexpr std::size_t kMostKeyBytes = 4096;
constexpr std::size_t kLeastKeyBytes = 8;

struct ProbeOptions {
  std::vector<std::string> endpoints;
  std::string output;
  std::string prompt;
  std::string messages_file;
  std::string key_environment;
  std::string key_file;
  bool from_file = false;
  bool json = false;
  bool events = false;
  ProbePlan plan;
};

// Pieces of an answer may make up the key where no single one held it.
std::string without_key(const ProbeOptions& options, std::string text) {
  redact_text(text, {options.plan.key});
  return text;
}

// Lines of the event stream; nothing where none was asked for.
Result<void> emit(const ProbeOptions& options, const CommandContext& context,
                  const std::string& line) {
  if (!options.events) return {};
  if (auto printed = context.console.print(without_key(options, line) + "\n"); !printed)
    return printed;
  return context.console.flush();
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

Result<std::string> read_key(const ProbeOptions& options) {
  if (!options.key_file.empty()) {
    auto text = read_whole_file(options.key_file, kMostKeyBytes);
    if (!text) return tl::unexpected(text.error());
    return std::string(trimmed(*text));
  }
  if (options.key_environment.empty()) return std::string();
  const char* value = std::getenv(options.key_environment.c_str());
  if (value == nullptr || *value == '\0') {
    return fail(
        ErrorKind::usage,
        fmt::format("--key-env {}: that variable is not set; set it or leave the option out",
                    escape_for_display(options.key_environment)));
  }
  return std::string(trimmed(value));
}

Result<std::string> read_messages(const ProbeOptions& options) {
  if (!options.messages_file.empty()) {
    auto text = read_text_file(options.messages_file);
    if (!text) return tl::unexpected(text.error());
    auto json = nlohmann::ordered_json::parse(*text, nullptr, false);
    if (json.is_object() && json.contains("messages")) json = json["messages"];
    if (!json.is_array() || json.empty()) {
      return fail(
          ErrorKind::malformed,
          fmt::format("{}: is no list of messages; give [{{\"role\": \"user\", \"content\": "
                      "\"…\"}}]",
                      escape_for_display(options.messages_file)));
    }
    return json.dump();
  }
  if (options.prompt.empty())
    return fail(ErrorKind::usage, "no prompt; give --prompt TEXT or --messages FILE");
  return nlohmann::ordered_json::array({{{"role", "user"}, {"content", options.prompt}}}).dump();
}

// Every line of a probe's file begins like this.
bool is_cut_exchange(std::string_view line) {
  constexpr std::string_view kBegin = R"({"stage":")";
  const std::size_t common = std::min(line.size(), kBegin.size());
  return line.substr(0, common) == kBegin.substr(0, common);
}

// What an earlier probe wrote to the same file. A line that was cut off is left out.
// Of one that was asked again, the last counts.
Result<std::vector<Exchange>> read_earlier(const std::string& path) {
  std::vector<Exchange> exchanges;
  std::map<std::string, std::size_t> places;
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return exchanges;
  if (!std::filesystem::is_regular_file(path, code)) return exchanges;  // /dev/stdout and the like
  const auto input = VendorInput::open(path);
  if (!input) return tl::unexpected(input.error());
  std::string_view text = input->bytes();
  std::int64_t number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    ++number;
    if (end == std::string_view::npos) {
      // The rest of a line that was cut off while it was written, never another file's.
      if (is_cut_exchange(line)) break;
      return fail(ErrorKind::malformed,
                  fmt::format("{}: is no file of a probe; give another file with -o",
                              escape_for_display(path)));
    }
    auto exchange = read_exchange(line);
    if (!exchange) {
      return fail(ErrorKind::malformed,
                  fmt::format("{}: line {}: {}; give another file with -o",
                              escape_for_display(path), number, exchange.error().message));
    }
    text.remove_prefix(end + 1);
    const auto [place, is_new] = places.emplace(exchange->key(), exchanges.size());
    if (is_new) {
      exchanges.push_back(std::move(*exchange));
    } else {
      exchanges[place->second] = std::move(*exchange);
    }
  }
  return exchanges;
}

// Cuts off a last line without its end, so that the next one begins on a line of its own.
Result<void> drop_half_line(const std::string& path) {
  std::error_code code;
  if (!std::filesystem::is_regular_file(path, code)) return {};
  std::uintmax_t keep = 0;
  {
    const auto input = VendorInput::open(path);
    if (!input) return tl::unexpected(input.error());
    const std::size_t last = input->bytes().rfind('\n');
    keep = last == std::string_view::npos ? 0 : last + 1;
    if (keep == input->bytes().size()) return {};
  }
  std::filesystem::resize_file(path, keep, code);
  if (code)
    return fail(ErrorKind::output, fmt::format("{}: {}", escape_for_display(path), code.message()));
  return {};
}

Result<ProbePlan> make_plan(const ProbeOptions& options) {
  ProbePlan plan = options.plan;
  const auto within = [](double value, double low, double high) {
    return value >= low && value <= high;  // false for NaN
  };
  if (!within(plan.limits.total_seconds, 0.001, 86'400.0))
    return fail(ErrorKind::usage, "--timeout: give seconds from 0.001 to 86400");
  if (!within(plan.first_pause_seconds, 0.0, 3600.0))
    return fail(ErrorKind::usage, "--first-pause: give seconds from 0 to 3600");
  if (!within(plan.requests_per_second, 0.0, 1e6))
    return fail(ErrorKind::usage, "--rate: give requests a second from 0 (no limit) to 1000000");
  if (!within(plan.request.temperature, 0.0, 100.0))
    return fail(ErrorKind::usage, "--temperature: give a number from 0 to 100");
  plan.endpoints = options.endpoints;
  for (const std::string& endpoint : plan.endpoints) {
    if (origin_of(endpoint).empty()) {
      return fail(ErrorKind::usage,
                  fmt::format("--endpoint {}: is no http or https URL; give one such as "
                              "https://host/v1",
                              escape_for_display(endpoint)));
    }
    if (endpoint.find('@') != std::string::npos) {
      return fail(ErrorKind::usage,
                  "--endpoint: a URL with a name or password in it would end up in "
                  "files; give the key with --key-env or --key-file");
    }
  }
  auto key = read_key(options);
  if (!key) return tl::unexpected(key.error());
  plan.key = std::move(*key);
  if (!plan.key.empty() && plan.key.size() < kLeastKeyBytes) {
    return fail(ErrorKind::usage,
                fmt::format("the key has {} characters: taking so short a one out of what a server "
                            "says would take words out of its answers; give one of {} or more",
                            plan.key.size(), kLeastKeyBytes));
  }
  auto messages = read_messages(options);
  if (!messages) return tl::unexpected(messages.error());
  plan.request.messages = std::move(*messages);
  return plan;
}

// A key that travels in the clear is read by everyone on the way.
void warn_of_clear_text(const ProbePlan& plan, const CommandContext& context) {
  if (plan.key.empty()) return;
  for (const std::string& endpoint : plan.endpoints) {
    const std::string origin = origin_of(endpoint);
    const bool near = origin.starts_with("http://127.") ||
                      origin.starts_with("http://localhost:") ||
                      origin.starts_with("http://[::1]:");
    if (origin.starts_with("https://") || near) continue;
    context.console.note(fmt::format("{}: the key is sent without TLS; give an https URL",
                                     escape_for_display(endpoint)));
  }
}

Result<void> ask(ProbeOptions& options, CommandContext& context, std::vector<Exchange>& exchanges) {
  auto plan = make_plan(options);
  if (!plan) return tl::unexpected(plan.error());
  options.plan.key = plan->key;
  if (auto dropped = drop_half_line(options.output); !dropped) return dropped;
  std::erase_if(exchanges, [](const Exchange& e) { return !holds_answer(e); });  // asked again
  std::ofstream file(options.output, std::ios::binary | std::ios::app);
  const auto failed = [&] {
    return fail(ErrorKind::output, fmt::format("{}: cannot be written; give another file with -o",
                                               escape_for_display(options.output)));
  };
  if (!file) return failed();
  warn_of_clear_text(*plan, context);
  Prober prober(std::move(*plan), exchanges, [&](Exchange&& exchange) -> Result<void> {
    file << exchange_line(exchange) << std::flush;
    if (!file) return failed();
    auto sent = emit(options, context, exchange_event(exchange));
    exchanges.push_back(std::move(exchange));
    return sent;
  });
  for (const Exchange& exchange : exchanges) {
    if (auto same = prober.check_same_question(exchange); !same) {
      return fail(ErrorKind::usage,
                  fmt::format("{}: {}", escape_for_display(options.output), same.error().message));
    }
  }
  if (!exchanges.empty()) {
    context.console.note(fmt::format("{}: goes on after {} exchanges",
                                     escape_for_display(options.output), exchanges.size()));
  }
  if (auto sent = emit(options, context, probe_started_event(options.endpoints, prober.total()));
      !sent) {
    return sent;
  }
  InterruptGuard interrupt;
  ProgressLine progress(context.console);
  return prober.run(interrupt.token(), [&](std::int64_t finished, std::int64_t total) {
    progress.update("asking", finished, total);
    (void)emit(options, context, progress_event("asking", finished, total));
  });
}

Result<void> print_report(const ProbeOptions& options, const CommandContext& context,
                          const ProbeReport& report, int exit_code) {
  if (!options.events)
    return context.console.print(
        without_key(options, options.json ? probe_json(report) : probe_text(report)));
  for (const Finding& finding : report.findings) {
    if (auto sent = emit(options, context, finding_event(finding)); !sent) return sent;
  }
  return emit(options, context, probe_done_event(report, exit_code));
}

Result<int> run(const ProbeOptions& given, CommandContext& context) {
  ProbeOptions options = given;  // with the key, once it is read
  auto exchanges = read_earlier(options.output);
  if (!exchanges) return tl::unexpected(exchanges.error());
  if (options.from_file && exchanges->empty()) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: holds no exchanges; give the file of an earlier probe with -o",
                            escape_for_display(options.output)));
  }
  Result<void> asked;
  if (!options.from_file) {
    if (options.endpoints.empty()) {
      return fail(ErrorKind::usage,
                  "no endpoint; give --endpoint URL (several are replicas), or "
                  "--from-file to read what was saved");
    }
    asked = ask(options, context, *exchanges);
    if (!asked && asked.error().kind != ErrorKind::interrupted) {
      (void)emit(options, context, error_event(asked.error()));
      return tl::unexpected(asked.error());
    }
  }
  // The order of arrival is no matter of chance in the report.
  std::stable_sort(exchanges->begin(), exchanges->end(), [](const Exchange& a, const Exchange& b) {
    return std::tie(a.stage, a.concurrency, a.replica, a.index) <
           std::tie(b.stage, b.concurrency, b.replica, b.index);
  });
  const ProbeReport report = climb_ladder(*exchanges);
  const bool open =
      report.cause == ProbeCause::not_enough || report.cause == ProbeCause::unresolved;
  const int code = !asked ? exit_code(ErrorKind::interrupted) : open ? kInconclusive : 0;
  if (auto printed = print_report(options, context, report, code); !printed)
    return tl::unexpected(printed.error());
  if (!asked) return tl::unexpected(asked.error());
  return code;
}

}  // namespace

void declare_probe(CLI::App& app, CommandContext& context) {
  auto options = bind_command<ProbeOptions>(app, context, &run);
  ProbePlan& plan = options->plan;
  app.add_option("--endpoint", options->endpoints,
                 "Base URL of an OpenAI-compatible server (https://host/v1); several are replicas");
  app.add_option("-o,--output", options->output,
                 "File of the exchanges; an existing one is continued")
      ->required();
  auto* prompt = app.add_option("--prompt", options->prompt, "What to ask, as the user's message");
  app.add_option("--messages", options->messages_file, "JSON file with a list of messages")
      ->excludes(prompt);
  app.add_option("--model", plan.request.model,
                 "Model to ask for; the first that the server lists otherwise");
  app.add_option("--samples", plan.samples, "Requests of each rung")
      ->check(CLI::Range(2, 100'000))
      ->capture_default_str();
  app.add_option("--concurrency", plan.concurrency, "Requests in flight of the rungs with company")
      ->check(CLI::Range(2, 256))
      ->capture_default_str();
  app.add_option("--max-tokens", plan.request.max_tokens, "Length of an answer")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--temperature", plan.request.temperature, "Asked for explicitly")
      ->capture_default_str();
  app.add_option("--seed", plan.request.seed, "Asked for explicitly")->capture_default_str();
  app.add_option("--top-logprobs", plan.request.top_logprobs,
                 "Alternatives to ask for; 0: no logprobs")
      ->check(CLI::Range(0, 20))
      ->capture_default_str();
  app.add_option("--timeout", plan.limits.total_seconds, "Seconds for one request")
      ->capture_default_str();
  app.add_option("--attempts", plan.most_attempts, "Of one request, with growing pauses")
      ->check(CLI::Range(1, 20))
      ->capture_default_str();
  app.add_option("--first-pause", plan.first_pause_seconds, "Seconds before the second attempt")
      ->capture_default_str();
  app.add_option("--rate", plan.requests_per_second,
                 "At most so many requests a second; 0: no limit")
      ->capture_default_str();
  auto* environment = app.add_option("--key-env", options->key_environment,
                                     "Environment variable that holds the key");
  app.add_option("--key-file", options->key_file, "File that holds the key")->excludes(environment);
  app.add_option("--ca-file", plan.limits.ca_file, "Certificates to trust besides the system's");
  app.add_flag("--from-file", options->from_file, "Ask nothing; report on the file given with -o");
  app.add_flag("--stream", plan.request.stream, "Ask for answers as streams of events");
  auto* json = app.add_flag("--json", options->json, "One JSON document");
  app.add_flag("--events", options->events, "Progress and results as JSON Lines on stdout")
      ->excludes(json);
}

}  // namespace driftscope::cli
