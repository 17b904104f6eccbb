// SPDX-License-Identifier: Apache-2.0
#include "app/cli/model_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/backend/host/huge_memory.h"
#include "engine/exec/lockstep.h"
#include "engine/model/description_text.h"
#include "engine/model/model_tensors.h"
#include "kernels/base/display_text.h"

namespace driftscope::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMebibyte = 1048576.0;

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

// Tensors that are stored in one way.
struct FormatTotal {
  std::string format;
  std::int64_t tensors = 0, elements = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t used_bytes = 0;  // once they are plain elements, as a run reads them
};

std::vector<FormatTotal> format_totals(const ModelCheckpoint& checkpoint) {
  std::vector<FormatTotal> totals;
  for_each_tensor(checkpoint, [&](const TensorView& view) {
    const std::string format =
        view.decoder != nullptr ? view.decoder->format() : std::string(dtype_name(view.dtype));
    auto found = std::find_if(totals.begin(), totals.end(),
                              [&](const FormatTotal& total) { return total.format == format; });
    if (found == totals.end()) {
      totals.push_back({.format = format});
      found = totals.end() - 1;
    }
    ++found->tensors;
    found->elements += view.elements();
    found->used_bytes += view.bytes();
    found->stored_bytes += view.decoder != nullptr ? view.decoder->stored_bytes() : view.bytes();
  });
  return totals;
}

Json experts_json(const ModelDescription& d) {
  if (d.moe.experts == 0) return nullptr;
  return {{"count", d.moe.experts},
          {"chosen", d.moe.chosen},
          {"intermediate", d.moe.intermediate},
          {"layers", route_spec(d).decisions()},
          {"renormalised", d.moe.renormalise},
          {"shared_intermediate", d.moe.shared_intermediate}};
}

Json architecture_json(const ModelDescription& d) {
  Json eos = Json::array();
  for (const TokenId id : d.eos) eos.push_back(id.value);
  std::int64_t windowed = 0;
  for (std::int64_t layer = 0; layer < d.layers; ++layer) windowed += d.window(layer) > 0 ? 1 : 0;
  return {{"model_type", d.model_type},
          {"layers", d.layers},
          {"hidden", d.hidden},
          {"heads", d.heads},
          {"kv_heads", d.kv_heads},
          {"head_dim", d.head_dim},
          {"intermediate", d.intermediate},
          {"vocabulary", d.vocabulary},
          {"max_positions", d.max_positions},
          {"rope_theta", d.rope_theta},
          {"positions", positions_text(d)},
          {"sliding_window", d.sliding_window},
          {"sliding_layers", windowed},
          {"tied_embeddings", d.tied_embeddings},
          {"experts", experts_json(d)},
          {"bos", d.bos ? Json(d.bos->value) : Json(nullptr)},
          {"eos", eos}};
}

Json formats_json(const std::vector<FormatTotal>& totals) {
  Json json = Json::array();
  for (const FormatTotal& total : totals) {
    json.push_back({{"format", total.format},
                    {"tensors", total.tensors},
                    {"elements", total.elements},
                    {"stored_bytes", total.stored_bytes}});
  }
  return json;
}

// Weights as a run reads them, and a bf16 cache.
Json memory_json(const ModelDescription& d, const std::vector<FormatTotal>& totals) {
  std::uint64_t weights = 0;
  for (const FormatTotal& total : totals) weights += total.used_bytes;
  const auto per_token =
      static_cast<std::uint64_t>(d.layers * 2 * d.kv_heads * d.head_dim) * dtype_size(Dtype::bf16);
  return {{"weights_bytes", weights},
          {"cache_bytes_per_token", per_token},
          {"cache_bytes_whole_context", per_token * static_cast<std::uint64_t>(d.max_positions)},
          {"available_bytes", available_memory()}};
}

Json problem(std::string_view severity, const std::string& text) {
  return {{"severity", severity}, {"text", text}};
}

void add_tokenizer_problems(const LoadedModel& model, Json& problems) {
  const ModelDescription& d = model.checkpoint->description();
  if (!model.tokenizer) {
    problems.push_back(problem("notice", "no tokenizer: prompts must be given as --prompt-ids"));
    return;
  }
  const auto ids = static_cast<std::int64_t>(model.tokenizer->vocabulary_size());
  if (ids > d.vocabulary) {
    problems.push_back(problem(
        "warning", fmt::format("the tokenizer has {} ids, the model's vocabulary {}: a text may "
                               "give ids that the model has no row for",
                               ids, d.vocabulary)));
  } else if (ids < d.vocabulary) {
    problems.push_back(problem(
        "info", fmt::format("{} of the model's {} vocabulary rows have no token: padding, as a "
                            "rule",
                            d.vocabulary - ids, d.vocabulary)));
  }
}

void add_memory_problems(const Json& memory, const std::vector<FormatTotal>& totals,
                         Json& problems) {
  const auto available = memory["available_bytes"].get<std::uint64_t>();
  const auto weights = memory["weights_bytes"].get<std::uint64_t>();
  const auto cache = memory["cache_bytes_whole_context"].get<std::uint64_t>();
  std::uint64_t plain = 0;  // can stay in the mapped files
  for (const FormatTotal& total : totals) {
    if (total.stored_bytes == total.used_bytes) plain += total.used_bytes;
  }
  const auto mebibytes = [](std::uint64_t bytes) { return static_cast<double>(bytes) / kMebibyte; };
  if (weights - plain > available) {
    problems.push_back(problem(
        "error", fmt::format("the dequantised weights need {:.0f} MiB, {:.0f} MiB are available: "
                             "this machine cannot run the model",
                             mebibytes(weights - plain), mebibytes(available))));
  } else if (weights > available) {
    problems.push_back(problem(
        "warning", fmt::format("the weights need {:.0f} MiB, {:.0f} MiB are available: they are "
                               "read from the files as the run goes, which is slow",
                               mebibytes(weights), mebibytes(available))));
  }
  if (weights <= available && weights + cache > available) {
    problems.push_back(problem(
        "notice", fmt::format("weights and a cache for the whole context need {:.0f} MiB, {:.0f} "
                              "MiB are available: keep the sequences short",
                              mebibytes(weights + cache), mebibytes(available))));
  }
}

Json problems_json(const LoadedModel& model, const Json& memory,
                   const std::vector<FormatTotal>& totals) {
  Json problems = Json::array();
  add_tokenizer_problems(model, problems);
  add_memory_problems(memory, totals, problems);
  for (const std::string& note : model.checkpoint->quantisation().notes) {
    problems.push_back(problem("notice", note));
  }
  if (model.checkpoint->description().eos.empty()) {
    problems.push_back(
        problem("info", "no end-of-sequence token is named: runs end at --steps or a stop string"));
  }
  return problems;
}

std::string text_of(const Json& value, const std::string& otherwise) {
  return value.is_string() ? escape_for_display(value.get<std::string>()) : otherwise;
}

std::string megabytes(const Json& bytes) {
  return fmt::format("{:.1f} MiB", bytes.get<double>() / kMebibyte);
}

std::string architecture_text(const Json& a) {
  std::string out = fmt::format(
      "  architecture   {}: {} layers, hidden {}, {} heads ({} kv) of {}, feed-forward {}, "
      "vocabulary {}{}\n"
      "  positions      {}\n",
      text_of(a["model_type"], ""), a["layers"].dump(), a["hidden"].dump(), a["heads"].dump(),
      a["kv_heads"].dump(), a["head_dim"].dump(), a["intermediate"].dump(), a["vocabulary"].dump(),
      a["tied_embeddings"] == true ? ", output tied to the embedding" : "",
      text_of(a["positions"], ""));
  const Json& e = a["experts"];
  if (e.is_null()) return out;
  return out +
         fmt::format("  experts        {} of width {} in {} layers, {} chosen per token{}{}\n",
                     e["count"].dump(), e["intermediate"].dump(), e["layers"].dump(),
                     e["chosen"].dump(), e["renormalised"] == true ? ", weights renormalised" : "",
                     e["shared_intermediate"] == 0 ? std::string()
                                                   : fmt::format(", a shared expert of width {}",
                                                                 e["shared_intermediate"].dump()));
}

std::string storage_text(const Json& report) {
  std::string out;
  std::string_view label = "weights";
  for (const Json& total : report["formats"]) {
    out += fmt::format("  {:<14} {} tensors as {}: {} parameters, {}\n", label,
                       total["tensors"].dump(), text_of(total["format"], ""),
                       total["elements"].dump(), megabytes(total["stored_bytes"]));
    label = "";
  }
  if (report["quantisation"]["method"].is_string()) {
    out += fmt::format("  quantisation   {}\n", text_of(report["quantisation"]["method"], ""));
  }
  const Json& memory = report["memory"];
  return out + fmt::format(
                   "  memory         weights {}, cache {} bytes a token (bf16), {} for "
                   "the whole context; available {}\n",
                   megabytes(memory["weights_bytes"]), memory["cache_bytes_per_token"].dump(),
                   megabytes(memory["cache_bytes_whole_context"]),
                   megabytes(memory["available_bytes"]));
}

}  // namespace

Json model_report(const LoadedModel& model) {
  const ModelCheckpoint& checkpoint = *model.checkpoint;
  const std::vector<FormatTotal> totals = format_totals(checkpoint);
  Json files = Json::array();
  for (const CheckpointFile& file : model.files) {
    files.push_back(
        {{"name", file.path.filename().string()}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  }
  const StoredQuantisation& quantisation = checkpoint.quantisation();
  Json report{{"given", model.path},
              {"path", checkpoint.path().string()},
              {"hub_id", text_or_null(model.location.hub_id)},
              {"revision", text_or_null(model.location.revision)},
              {"commit", text_or_null(model.location.commit)},
              {"architecture", architecture_json(checkpoint.description())},
              {"parameters", checkpoint.description().parameters()},
              {"formats", formats_json(totals)},
              {"quantisation",
               {{"method", text_or_null(storage_method(checkpoint))},
                {"notes", quantisation.notes},
                {"scale_files", quantisation.scale_files}}}};
  report["tokenizer"] = model.tokenizer ? Json{{"kind", model.tokenizer->kind()},
                                               {"ids", model.tokenizer->vocabulary_size()},
                                               {"sha256", model.tokenizer->sha256()}}
                                        : Json(nullptr);
  report["chat_template_sha256"] = text_or_null(model.chat_template_sha256);
  report["sha256"] = model.sha256;
  report["files"] = std::move(files);
  report["memory"] = memory_json(checkpoint.description(), totals);
  report["problems"] = problems_json(model, report["memory"], totals);
  return report;
}

std::string model_report_text(const Json& report) {
  std::string out = fmt::format("model {}\n", text_of(report["given"], ""));
  if (report["hub_id"].is_string()) {
    out += fmt::format("  hub            {}, commit {}, in {}\n", text_of(report["hub_id"], ""),
                       text_of(report["commit"], ""), text_of(report["path"], ""));
  }
  out += architecture_text(report["architecture"]);
  out += storage_text(report);
  const Json& tokenizer = report["tokenizer"];
  out += fmt::format("  tokenizer      {}\n  chat template  {}\n",
                     tokenizer.is_null()
                         ? std::string("none")
                         : fmt::format("{}, {} ids, sha256 {}", text_of(tokenizer["kind"], ""),
                                       tokenizer["ids"].dump(), text_of(tokenizer["sha256"], "")),
                     report["chat_template_sha256"].is_null()
                         ? std::string("none")
                         : "sha256 " + text_of(report["chat_template_sha256"], ""));
  out += fmt::format("  sha256         {} (of all files)\n", text_of(report["sha256"], ""));
  for (const Json& file : report["files"]) {
    out += fmt::format("  {:<14} {} bytes, sha256 {}\n", text_of(file["name"], ""),
                       file["bytes"].dump(), text_of(file["sha256"], ""));
  }
  for (const Json& item : report["problems"]) {
    out += fmt::format("  {:<14} {}\n", text_of(item["severity"], ""), text_of(item["text"], ""));
  }
  return out;
}

}  // namespace driftscope::cli
