// SPDX-License-Identifier: Apache-2.0
// Bad input gets one clear line and the documented exit code.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "tests/cli/program.h"

namespace driftscope::test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> run_arguments(const std::string& model, const std::string& output) {
  return {"run",     "--model", model, "--prompt", "In the beginning",
          "--steps", "2",       "-q",  "-o",       output};
}

std::vector<std::string> with(std::vector<std::string> words,
                              const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Exactly one line on stderr, nothing on stdout, and every part of `parts` in the line.
void expect_one_line(const ProgramResult& result, int exit_code,
                     const std::vector<std::string>& parts) {
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_TRUE(result.err.starts_with("driftscope: ")) << result.err;
  for (const std::string& part : parts) {
    EXPECT_NE(result.err.find(part), std::string::npos) << "\"" << part << "\" in: " << result.err;
  }
}

class BadInput : public ::testing::Test {
 protected:
  ScratchFolder scratch;
  std::string output = scratch.file("out.h5");
  void TearDown() override {
    EXPECT_FALSE(fs::exists(output)) << "a failed run left an output file";
    EXPECT_FALSE(fs::exists(output + ".part")) << "a failed run left a .part file";
  }
};

TEST_F(BadInput, TruncatedSafetensors) {
  copy_model(scratch.path() / "m");
  fs::resize_file(scratch.path() / "m/model.safetensors", 100000);
  expect_one_line(run_program(run_arguments(scratch.file("m"), output), scratch.path()), 4,
                  {"model.safetensors"});
}

TEST_F(BadInput, UnknownCommand) {
  expect_one_line(run_program({"rnu", "--steps", "2"}, scratch.path()), 2,
                  {"unknown command \"rnu\"", "driftscope --help"});
}

TEST_F(BadInput, EndlessPromptFile) {
  expect_one_line(run_program({"run", "--model", sample_model(), "--prompt-file", "/dev/zero", "-q",
                               "-o", output},
                              scratch.path()),
                  4, {"/dev/zero", "64 MiB"});
}

TEST_F(BadInput, ScoreIntoAFileOfAnUnknownKind) {
  expect_one_line(run_program({"score", "--model", sample_model(), "--text", "And", "-q", "-o",
                               scratch.file("logits.txt")},
                              scratch.path()),
                  2, {"logits.txt", ".npy", ".h5"});
}

TEST_F(BadInput, ThePartOfAKilledRunIsKept) {
  const std::string other = scratch.file("killed.h5");
  write_file(other + ".part", "rows");
  expect_one_line(run_program(run_arguments(sample_model(), other), scratch.path()), 6,
                  {"killed.h5.part", "recover", "--force"});
  EXPECT_EQ(read_file(other + ".part"), "rows");
}

TEST_F(BadInput, NeighbourPromptsWithoutNeighbours) {
  write_file(scratch.path() / "prompts.txt", "And it came to pass\n");
  const std::vector<std::string> file{"--neighbour-prompts", scratch.file("prompts.txt")};
  expect_one_line(run_program(with(run_arguments(sample_model(), output), file), scratch.path()), 2,
                  {"--neighbour-prompts", "prompts.txt", "--set-b neighbours=N"});
  expect_one_line(
      run_program(
          with({"score", "--model", sample_model(), "--ids", "1,2", "-q", "-o", output}, file),
          scratch.path()),
      2, {"--neighbour-prompts", "--set neighbours=N"});
}

TEST_F(BadInput, GraphSizesBelowOne) {
  expect_one_line(
      run_program(with(run_arguments(sample_model(), output), {"--set-b", "graph_sizes=[4,0]"}),
                  scratch.path()),
      2, {"graph_sizes", "0"});
}

TEST_F(BadInput, WrongJsonInConfig) {
  copy_model(scratch.path() / "m");
  write_file(scratch.path() / "m/config.json", "{\"model_type\": \"llama\",");
  expect_one_line(run_program(run_arguments(scratch.file("m"), output), scratch.path()), 4,
                  {"config.json"});
}

TEST_F(BadInput, DirectoryWithoutConfig) {
  fs::create_directory(scratch.path() / "m");
  expect_one_line(run_program(run_arguments(scratch.file("m"), output), scratch.path()), 4,
                  {"config.json"});
}

TEST_F(BadInput, NoSuchDirectory) {
  expect_one_line(run_program(run_arguments(scratch.file("none"), output), scratch.path()), 4,
                  {"none"});
}

TEST_F(BadInput, StepsBelowOne) {
  for (const char* steps : {"-1", "0"}) {
    expect_one_line(run_program({"run", "--model", sample_model(), "--prompt", "x", "--steps",
                                 steps, "-o", output},
                                scratch.path()),
                    2, {"--steps"});
  }
  expect_one_line(run_program({"run", "--model", sample_model(), "--prompt", "x", "--steps", "many",
                               "-o", output},
                              scratch.path()),
                  2, {"--steps"});
}

TEST_F(BadInput, UnknownKnobAndUnknownValue) {
  expect_one_line(run_program(with(run_arguments(sample_model(), output),
                                   {"--set-b", "matmul_polcy=invariant"}),
                              scratch.path()),
                  2, {"matmul_polcy", "matmul_policy"});
  expect_one_line(
      run_program(with(run_arguments(sample_model(), output), {"--set-b", "matmul_policy=fast"}),
                  scratch.path()),
      2, {"matmul_policy", "fast", "invariant", "shape_dependent"});
}

TEST_F(BadInput, KnobThatTheBackendCannotHonour) {
  expect_one_line(
      run_program(with(run_arguments(sample_model(), output), {"--set-b", "matmul_policy=vendor"}),
                  scratch.path()),
      5, {"matmul_policy", "host"});
  expect_one_line(
      run_program(with(run_arguments(sample_model(), output), {"--set-b", "backend=cuda"}),
                  scratch.path()),
      5, {"backend", "cuda"});
}

TEST_F(BadInput, UnknownPresetOptionAndCommand) {
  expect_one_line(
      run_program(with(run_arguments(sample_model(), output), {"--a", "nonesuch"}), scratch.path()),
      2, {"nonesuch", "bf16-invariant"});
  expect_one_line(run_program({"run", "--nonesuch"}, scratch.path()), 2, {"driftscope run --help"});
  expect_one_line(run_program({"nonesuch"}, scratch.path()), 2, {"--help"});
  expect_one_line(run_program({}, scratch.path()), 2, {"--help"});
}

TEST_F(BadInput, PromptMissingEmptyOrOutsideTheVocabulary) {
  expect_one_line(run_program({"run", "--model", sample_model(), "-o", output}, scratch.path()), 2,
                  {"--prompt"});
  expect_one_line(
      run_program({"run", "--model", sample_model(), "--prompt-ids", "1,999999", "-o", output},
                  scratch.path()),
      2, {"999999", "vocabulary"});
  expect_one_line(
      run_program({"run", "--model", sample_model(), "--prompt-ids", "1,x", "-o", output},
                  scratch.path()),
      2, {"x"});
  expect_one_line(run_program({"run", "--model", sample_model(), "--prompt-file",
                               scratch.file("none.txt"), "-o", output},
                              scratch.path()),
                  4, {"none.txt"});
}

TEST_F(BadInput, CaptureThatIsNotHdf5) {
  write_file(scratch.path() / "text.h5", "this is not HDF5\n");
  for (const char* command : {"compare", "inspect"}) {
    expect_one_line(run_program({command, scratch.file("text.h5")}, scratch.path()), 4,
                    {"text.h5", "HDF5"});
    expect_one_line(run_program({command, scratch.file("none.h5")}, scratch.path()), 4,
                    {"none.h5"});
  }
  write_file(scratch.path() / "empty.h5", "");
  expect_one_line(run_program({"compare", scratch.file("empty.h5")}, scratch.path()), 4,
                  {"empty.h5"});
}

TEST_F(BadInput, OutputThatCannotBeWritten) {
  expect_one_line(run_program(run_arguments(sample_model(), "/proc/none/out.h5"), scratch.path()),
                  6, {"/proc/none/out.h5"});
  expect_one_line(
      run_program(run_arguments(sample_model(), scratch.path().string()), scratch.path()), 6,
      {"directory"});
  write_file(scratch.path() / "kept.h5", "kept");
  expect_one_line(
      run_program(run_arguments(sample_model(), scratch.file("kept.h5")), scratch.path()), 6,
      {"kept.h5", "--force"});
  EXPECT_EQ(read_file(scratch.path() / "kept.h5"), "kept");
}

// Replacing a device, a pipe or a link would destroy more than a file.
TEST_F(BadInput, TargetsThatAreNotRegularFilesAreLeftAlone) {
  const std::string pipe = scratch.file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string link = scratch.file("link.h5");
  fs::create_symlink("elsewhere.h5", link);
  for (const std::string& target : {pipe, link}) {
    auto words = run_arguments(sample_model(), target);
    words.push_back("--force");
    expect_one_line(run_program(words, scratch.path()), 6, {target});
  }
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_TRUE(fs::is_symlink(link));
}

TEST_F(BadInput, TapsThatTheFormatCannotHold) {
  expect_one_line(run_program({"score", "--model", sample_model(), "--ids", "0,1", "--taps", "all",
                               "-o", scratch.file("rows.npy")},
                              scratch.path()),
                  2, {"--taps", ".npy"});
  EXPECT_FALSE(fs::exists(scratch.path() / "rows.npy"));
}

TEST_F(BadInput, BrokenTokenizer) {
  copy_model(scratch.path() / "m");
  write_file(scratch.path() / "m/tokenizer.json", "[]");
  expect_one_line(run_program(run_arguments(scratch.file("m"), output), scratch.path()), 4,
                  {"tokenizer.json"});
}

}  // namespace
}  // namespace driftscope::test
