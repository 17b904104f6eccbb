// SPDX-License-Identifier: Apache-2.0
// The main job on the sample model, as a person would type it.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/cli/program.h"

namespace driftscope::test {
namespace {

using Json = nlohmann::json;

ProgramResult run_json(const ScratchFolder& scratch, const std::vector<std::string>& more,
                       const std::string& model = sample_model()) {
  std::vector<std::string> words{
      "run", "--model", model,     "--prompt", "And the king said",   "--steps", "12",
      "-q",  "--json",  "--force", "-o",       scratch.file("run.h5")};
  words.insert(words.end(), more.begin(), more.end());
  return run_program(words, scratch.path());
}

const Json* finding(const Json& document, const std::string& id) {
  for (const Json& entry : document["findings"]) {
    if (entry["id"] == id) return &entry;
  }
  return nullptr;
}

// Both sides read the prompt, a pipe gives it once.
TEST(MainJob, APromptFromAPipeReachesBothSides) {
  const ScratchFolder scratch;
  const std::string pipe = scratch.file("prompt.fifo");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << "And the king said"; });
  const auto result = run_program({"run", "--model", sample_model(), "--prompt-file", pipe,
                                   "--steps", "2", "-q", "--json", "-o", scratch.file("run.h5")},
                                  scratch.path());
  writer.join();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json document = Json::parse(result.out);
  EXPECT_EQ(document["verdict"], "bitwise");
  EXPECT_EQ(document["prompt_text"], "And the king said");
}

// What lies before the cut comes back, and nothing is invented for what lay behind it.
TEST(MainJob, ACaptureWhoseEndIsMissingIsRecovered) {
  const ScratchFolder scratch;
  ASSERT_EQ(run_json(scratch, {"--taps", "layers"}).exit_code, 0);
  const std::string whole = read_file(scratch.path() / "run.h5");
  for (const std::size_t missing : {std::size_t{1}, std::size_t{3000}}) {
    write_file(scratch.path() / "cut.h5", whole.substr(0, whole.size() - missing));
    EXPECT_EQ(run_program({"compare", "cut.h5"}, scratch.path()).exit_code, 4);
    const auto saved =
        run_program({"recover", "cut.h5", "-o", "saved.h5", "--force"}, scratch.path());
    ASSERT_EQ(saved.exit_code, 0) << saved.err;
    EXPECT_EQ(saved.out, "48 steps of all lanes saved in saved.h5\n") << missing;
    const auto compared = run_program({"compare", "run.h5", "saved.h5", "--json"}, scratch.path());
    const Json document = Json::parse(compared.out);
    EXPECT_EQ(document["metrics"]["different_entries"]["max"], 0.0);
    EXPECT_EQ(document["steps"], 12);
  }
  EXPECT_FALSE(std::filesystem::exists(scratch.path() / "saved.h5.padded"));
}

TEST(MainJob, AFingerprintHoldsEveryKnobThatCanChangeAResult) {
  const ScratchFolder scratch;
  const auto before = run_program({"fingerprint", "--json"}, scratch.path());
  ASSERT_EQ(before.exit_code, 0) << before.err;
  write_file(scratch.path() / "before.json", before.out);
  const auto changed = run_program(
      {"fingerprint", "--set", "accumulator=bf16", "--against", "before.json"}, scratch.path());
  EXPECT_EQ(changed.exit_code, 1);
  EXPECT_EQ(changed.out, "knob.accumulator: f32 -> bf16\n");
  const auto threads = run_program(
      {"fingerprint", "--set", "threads=1", "--against", "before.json"}, scratch.path());
  EXPECT_EQ(threads.exit_code, 0) << threads.out;
}

TEST(MainJob, AAgainstAIsExactlyZero) {
  const ScratchFolder scratch;
  for (const char* preset :
       {"reference-f32", "bf16-invariant", "vllm-default-like", "hf-eager-like"}) {
    const auto result = run_json(scratch, {"--a", preset, "--b", preset});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const Json document = Json::parse(result.out);
    EXPECT_EQ(document["verdict"], "bitwise") << preset;
    for (const char* metric : {"max_abs", "mean_abs", "rms", "max_rel", "centred_rms", "max_ulp",
                               "cosine", "kl_ab", "kl_ba", "js", "tv", "rank_flips"}) {
      EXPECT_EQ(document["metrics"][metric]["max"], 0.0) << preset << " " << metric;
    }
    EXPECT_EQ(document["control"]["max_abs"], 0.0);
    EXPECT_TRUE(document["first_divergence"].is_null());
    EXPECT_TRUE(document["first_flip"].is_null());
  }
}

TEST(MainJob, NoControlLeavesTheControlLaneOut) {
  const ScratchFolder scratch;
  const auto without = run_json(scratch, {"--no-control"});
  ASSERT_EQ(without.exit_code, 0) << without.err;
  const auto inspected = run_program({"inspect", scratch.file("run.h5")}, scratch.path());
  EXPECT_EQ(inspected.out.find("lane control"), std::string::npos) << inspected.out;
  ASSERT_EQ(run_json(scratch, {"--control"}).exit_code, 0);
  const auto with = run_program({"inspect", scratch.file("run.h5")}, scratch.path());
  EXPECT_NE(with.out.find("lane control"), std::string::npos) << with.out;
}

TEST(MainJob, NeighboursChangeBitsUnderShapeDependentPlansOnly) {
  const ScratchFolder scratch;
  const auto dependent = run_json(scratch, {"--a", "bf16-shape-dependent", "--b",
                                            "bf16-shape-dependent", "--set-b", "neighbours=7"});
  ASSERT_EQ(dependent.exit_code, 0) << dependent.err;
  const Json drifted = Json::parse(dependent.out);
  EXPECT_NE(drifted["verdict"], "bitwise");
  EXPECT_GT(drifted["metrics"]["max_abs"]["max"].get<double>(), 0.0);
  EXPECT_EQ(drifted["control"]["max_abs"], 0.0);

  const auto invariant = run_json(
      scratch, {"--a", "bf16-invariant", "--b", "bf16-invariant", "--set-b", "neighbours=7"});
  ASSERT_EQ(invariant.exit_code, 0) << invariant.err;
  EXPECT_EQ(Json::parse(invariant.out)["verdict"], "bitwise");
}

// The report names the rows that were in flight where the arithmetic parted, as recorded.
TEST(MainJob, RowsInFlightAreNamedWithTheirStep) {
  const ScratchFolder scratch;
  const auto result = run_json(scratch, {"--a", "bf16-shape-dependent", "--set-b", "neighbours=7",
                                         "--set-b", "arrival_order=first"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json document = Json::parse(result.out);
  const Json* order = finding(document, "plans_differ");
  ASSERT_NE(order, nullptr) << document["findings"].dump(1);
  const Json& evidence = (*order)["evidence"];
  EXPECT_EQ(evidence["rows_a"], 1);
  EXPECT_GT(evidence["rows_b"].get<int>(), 1);
  EXPECT_GE(evidence["step"].get<int>(), 1);
  EXPECT_NE((*order)["text"].get<std::string>().find("1 row in flight (A)"), std::string::npos);
}

// Neighbours consume numbers of a shared stream: same bits, other draws.
TEST(MainJob, ASharedStreamIsNamedAsTheSamplersDoing) {
  const ScratchFolder scratch;
  const auto result = run_json(
      scratch, {"--a", "bf16-invariant", "--set-a", "temperature=1", "--set-b", "temperature=1",
                "--set-a", "seed_scope=shared_worker", "--set-b", "seed_scope=shared_worker",
                "--set-b", "neighbours=3", "--set-b", "batch_position=3"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json divergence = Json::parse(result.out)["first_divergence"];
  ASSERT_FALSE(divergence.is_null());
  EXPECT_EQ(divergence["cause"], "sampler");
  const auto reason = divergence["reason"].get<std::string>();
  EXPECT_NE(reason.find("share one stream"), std::string::npos) << reason;
  EXPECT_NE(reason.find("the random numbers differ: uniform "), std::string::npos) << reason;
}

// Adds one unit in the last place to a bf16 weight of layer 2 and expects the drift to begin there.
TEST(MainJob, OneBf16UlpInOneWeightIsFoundInItsLayer) {
  const ScratchFolder scratch;
  copy_model(scratch.path() / "planted");
  const auto path = scratch.path() / "planted/model.safetensors";
  std::string bytes = read_file(path);
  std::uint64_t header_length = 0;
  std::memcpy(&header_length, bytes.data(), sizeof header_length);
  const Json header = Json::parse(bytes.substr(8, header_length));
  const auto offset =
      header["model.layers.2.mlp.down_proj.weight"]["data_offsets"][0].get<std::size_t>();
  const std::size_t at = 8 + header_length + offset + 2 * 4000;
  bytes[at] = static_cast<char>(bytes[at] ^ 1);  // the lowest bit of the significand
  write_file(path, bytes);

  const auto result = run_json(
      scratch, {"--model-b", scratch.file("planted"), "--a", "reference-f32", "--taps", "layers"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json document = Json::parse(result.out);
  ASSERT_NE(finding(document, "checkpoints_differ"), nullptr);
  const Json* begins = finding(document, "first_tap_drift");
  ASSERT_NE(begins, nullptr) << document["findings"].dump(1);
  EXPECT_NE((*begins)["text"].get<std::string>().find("layer 2"), std::string::npos)
      << begins->dump();
}

// A model that computes only NaN agrees with itself bit for bit, and nothing was measured.
TEST(MainJob, RowsWithoutAFiniteNumberAreInconclusive) {
  const ScratchFolder scratch;
  copy_model(scratch.path() / "nan");
  const auto path = scratch.path() / "nan/model.safetensors";
  std::string bytes = read_file(path);
  std::uint64_t header_length = 0;
  std::memcpy(&header_length, bytes.data(), sizeof header_length);
  const Json header = Json::parse(bytes.substr(8, header_length));
  const auto offset = header["model.norm.weight"]["data_offsets"][0].get<std::size_t>();
  for (std::size_t i = 0; i < 192; ++i) {  // bf16 NaN: 0x7fc0
    bytes[8 + header_length + offset + 2 * i] = static_cast<char>(0xc0);
    bytes[8 + header_length + offset + 2 * i + 1] = 0x7f;
  }
  write_file(path, bytes);
  const auto result = run_json(scratch, {"--fail-on", "bitwise"}, scratch.file("nan"));
  EXPECT_EQ(result.exit_code, 3) << result.err;
  const Json document = Json::parse(result.out);
  EXPECT_EQ(document["verdict"], "inconclusive");
  EXPECT_NE(finding(document, "nan_in_logits"), nullptr);
}

TEST(MainJob, CompareOfTheCaptureSaysWhatTheRunSaid) {
  const ScratchFolder scratch;
  const auto run =
      run_json(scratch, {"--a", "hf-eager-like", "--b", "bf16-invariant", "--taps", "layers"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto compare = run_program({"compare", scratch.file("run.h5"), "--json"}, scratch.path());
  ASSERT_EQ(compare.exit_code, 0) << compare.err;
  EXPECT_EQ(Json::parse(run.out), Json::parse(compare.out));
}

TEST(MainJob, FailOnTurnsAWeakerVerdictIntoExitOne) {
  const ScratchFolder scratch;
  const std::vector<std::string> sides{"--a", "hf-eager-like", "--b", "bf16-invariant"};
  auto words = sides;
  words.insert(words.end(), {"--fail-on", "bitwise"});
  EXPECT_EQ(run_json(scratch, words).exit_code, 1);
  EXPECT_EQ(run_json(scratch, {"--fail-on", "bitwise"}).exit_code, 0);
  EXPECT_EQ(run_json(scratch, {"--fail-on", "nonesuch"}).exit_code, 2);
}

TEST(MainJob, EventsAreJsonLinesFromStartedToDone) {
  const ScratchFolder scratch;
  const auto result =
      run_program({"run", "--model", sample_model(), "--prompt", "And the king said", "--steps",
                   "5", "--events", "-o", scratch.file("e.h5")},
                  scratch.path());
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::vector<std::string> kinds;
  std::size_t begin = 0;
  std::int64_t steps = 0;
  while (begin < result.out.size()) {
    const auto end = result.out.find('\n', begin);
    ASSERT_NE(end, std::string::npos);
    const Json line = Json::parse(result.out.substr(begin, end - begin));
    kinds.push_back(line["event"]);
    if (kinds.back() == "step") {
      EXPECT_EQ(line["step"], steps++);
    }
    begin = end + 1;
  }
  ASSERT_FALSE(kinds.empty());
  EXPECT_EQ(kinds.front(), "started");
  EXPECT_EQ(kinds.back(), "done");
  EXPECT_EQ(steps, 5);
}

TEST(MainJob, ThreadsChangeNoMetricAndNoDivergence) {
  const ScratchFolder scratch;
  const auto one = run_json(scratch, {"--a", "bf16-shape-dependent", "--b", "hf-eager-like",
                                      "--set-a", "threads=1", "--set-b", "threads=1"});
  const auto two = run_json(scratch, {"--a", "bf16-shape-dependent", "--b", "hf-eager-like",
                                      "--set-a", "threads=2", "--set-b", "threads=2"});
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const Json first = Json::parse(one.out);
  const Json second = Json::parse(two.out);
  EXPECT_EQ(first["metrics"], second["metrics"]);
  EXPECT_EQ(first["first_divergence"], second["first_divergence"]);
}

// Logits of the sample model against its float64 oracle (samples/train/oracle.py). The tolerance is
// that of the reference checkpoints: a float32 implementation stays within 2e-4.
TEST(MainJob, ScoreAgreesWithTheFloat64Oracle) {
  const ScratchFolder scratch;
  for (const char* name : {"creation", "hacker"}) {
    const Json oracle = Json::parse(
        read_file(std::string(DRIFTSCOPE_SOURCE_DIR) + "/samples/oracle/" + name + ".json"));
    std::string ids;
    for (const auto& id : oracle["ids"]) ids += id.dump() + ",";
    const std::string path = scratch.file(std::string(name) + ".npy");
    const auto result = run_program(
        {"score", "--model", sample_model(), "--ids", ids, "-q", "-o", path}, scratch.path());
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const std::string bytes = read_file(path);
    ASSERT_EQ(bytes.substr(0, 6), "\x93NUMPY");
    const auto header = static_cast<std::size_t>(static_cast<unsigned char>(bytes[8])) +
                        256 * static_cast<std::size_t>(static_cast<unsigned char>(bytes[9]));
    const auto& last = oracle["last_logits"];
    const std::size_t rows = oracle["ids"].size();
    ASSERT_EQ(bytes.size(), 10 + header + 4 * rows * last.size());
    double largest = 0.0;
    for (std::size_t i = 0; i < last.size(); ++i) {
      float value = 0.0F;
      std::memcpy(&value, bytes.data() + 10 + header + 4 * ((rows - 1) * last.size() + i),
                  sizeof value);
      largest = std::max(largest, std::abs(double{value} - last[i].get<double>()));
    }
    EXPECT_LT(largest, 2e-4) << name;
    EXPECT_GT(largest, 0.0) << "f32 against f64 cannot agree in every digit";
  }
}

TEST(MainJob, TokenizeGivesTheIdsOfTheIndependentEncoder) {
  const ScratchFolder scratch;
  const Json vectors = Json::parse(
      read_file(std::string(DRIFTSCOPE_SOURCE_DIR) + "/samples/train/tokenizer_vectors.json"));
  ASSERT_GE(vectors.size(), 40U);
  for (std::size_t i = 0; i < vectors.size(); i += 8) {
    write_file(scratch.path() / "text", vectors[i]["text"].get<std::string>());
    const auto result = run_program(
        {"tokenize", "--model", sample_model(), "--file", scratch.file("text"), "--json"},
        scratch.path());
    ASSERT_EQ(result.exit_code, 0) << result.err;
    Json ids = Json::array();
    const Json document = Json::parse(result.out);
    for (const auto& token : document["tokens"]) ids.push_back(token["id"]);
    EXPECT_EQ(ids, vectors[i]["ids_with_bos"]) << vectors[i]["text"];
  }
}

TEST(MainJob, EveryDocumentFormatIsWritten) {
  const ScratchFolder scratch;
  ASSERT_EQ(run_json(scratch, {"--a", "hf-eager-like", "--b", "bf16-invariant"}).exit_code, 0);
  for (const char* format : {"csv", "json", "jsonl", "html"}) {
    const auto path = scratch.file(std::string("out.") + format);
    const auto result = run_program(
        {"export", scratch.file("run.h5"), "--to", format, "-o", path, "-q"}, scratch.path());
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_GT(read_file(path).size(), 200U) << format;
  }
  EXPECT_EQ(Json::parse(read_file(scratch.path() / "out.json"))["steps"], 12);
  const std::string csv = read_file(scratch.path() / "out.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 13);  // header and 12 steps
}

}  // namespace
}  // namespace driftscope::test
