// SPDX-License-Identifier: Apache-2.0
#include "app/cli/prompt_report.h"

#include <fmt/format.h>

#include "kernels/base/display_text.h"

namespace driftscope::cli {
namespace {

// Why the model's templates cannot be used; empty: they can, or there is no chat to speak of.
std::string template_problem(const ModelChat& chat) {
  if (!chat.problem.empty()) return chat.problem;
  for (const NamedTemplate& entry : chat.templates.templates) {
    const auto parsed = jinja::Template::parse(
        entry.source, fmt::format("chat template \"{}\"", escape_for_display(entry.name)));
    if (!parsed) return parsed.error().message;
  }
  return {};
}

std::string template_lines(const ModelChat& chat) {
  std::string out;
  for (const NamedTemplate& entry : chat.templates.templates) {
    out += fmt::format("  template       \"{}\" of {}: {} bytes, sha256 {}\n",
                       escape_for_display(entry.name), chat.templates.origin, entry.source.size(),
                       entry.sha256);
  }
  const std::string bos = chat.templates.special_token("bos_token");
  if (!bos.empty()) {
    out += fmt::format("  BOS            {}{}\n", escape_for_display(bos),
                       !chat.templates.add_bos_token   ? ""
                       : *chat.templates.add_bos_token ? ", added by the tokenizer"
                                                       : ", not added by the tokenizer");
  }
  return out;
}

bool has_prompt(const PromptReportOptions& options) {
  const PromptOptions& prompt = options.prompt;
  return prompt.text || prompt.file || prompt.ids || prompt.chat.given();
}

Result<PromptFacts> facts_of(const PromptReportOptions& options, const LoadedModel* model) {
  PromptFacts facts;
  if (model != nullptr) {
    auto prompt = make_prompt(options.prompt, *model);
    if (!prompt) return tl::unexpected(prompt.error());
    facts.ids = prompt->ids;
    if (prompt->text_known) facts.text = prompt->text;
    facts.ids_given = !prompt->text_known;
    facts.request = prompt->request;
    facts.rendered = prompt->rendered;
    if (model->tokenizer) take_bos_facts(model->chat.templates, *model->tokenizer, facts);
  } else {
    auto ids = parse_ids(*options.prompt.ids);
    if (!ids) return tl::unexpected(ids.error());
    facts.ids = std::move(*ids);
    facts.bos_expected = options.bos.has_value();
  }
  if (options.bos) facts.bos = TokenId{*options.bos};
  if (options.vendor_ids) {
    auto ids = parse_ids(*options.vendor_ids);
    if (!ids) return tl::unexpected(ids.error());
    facts.vendor_ids = std::move(*ids);
  }
  return facts;
}

}  // namespace

void declare_prompt_report(CLI::App& app, PromptReportOptions& options) {
  declare_prompt(app, options.prompt);
  app.add_option("--bos", options.bos, "Id of the BOS token, for --prompt-ids without a model");
  app.add_option("--vendor-ids", options.vendor_ids,
                 "Ids that another tokenizer made of the same prompt: 1,2,3");
}

Result<std::string> prompt_report(const PromptReportOptions& options, const LoadedModel* model) {
  std::string out;
  PromptFacts facts;
  if (model != nullptr) out += template_lines(model->chat);
  const bool prompt = has_prompt(options);
  if (prompt) {
    if (model == nullptr && !options.prompt.ids) {
      return fail(ErrorKind::usage, "a text needs --model; without one, give --prompt-ids");
    }
    auto made = facts_of(options, model);
    if (!made) return tl::unexpected(made.error());
    facts = std::move(*made);
    out += fmt::format("prompt\n  tokens         {}\n", facts.ids.size());
    if (facts.rendered) {
      out += fmt::format(
          "  rendered       {} bytes, template \"{}\", date {}\n", facts.rendered->text.size(),
          escape_for_display(facts.rendered->template_name), facts.rendered->date.text());
    }
  }
  if (model != nullptr) facts.template_problem = template_problem(model->chat);
  const auto findings = find_prompt_findings(facts);
  if (prompt && findings.empty()) out += "  findings       none\n";
  for (const PromptFinding& finding : findings) {
    out += fmt::format("  {:<14} {}: {}\n", name_of(finding.severity), finding.id, finding.text);
  }
  return out;
}

}  // namespace driftscope::cli
