// SPDX-License-Identifier: Apache-2.0
// Includes point one way only; the arrows are those of ARCHITECTURE.md.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct Room {
  std::string_view name;               // the longest prefix of a path decides its room
  std::vector<std::string_view> sees;  // prefixes that it may include, besides itself
};

const std::vector<Room>& rooms() {
  static const std::vector<Room> table{
      {"kernels/base", {}},
      {"kernels/plan", {"kernels/base"}},
      {"kernels/quant", {"kernels/base", "kernels/plan"}},
      {"kernels", {"kernels/base", "kernels/plan", "kernels/quant", "kernels/softmax"}},
      {"engine/trace", {"kernels/base"}},
      {"engine/config", {"kernels/base", "kernels/plan", "engine/trace"}},
      // What a code of a quantised checkpoint stands for is said by kernels/quant.
      {"engine/model", {"kernels/base", "kernels/plan", "kernels/quant"}},
      // A tokenizer is part of a checkpoint: strict JSON, hashing and file checks are shared.
      {"engine/text", {"kernels/base", "kernels/plan", "engine/model", "engine/text/jinja"}},
      {"engine/text/jinja", {"kernels/base"}},
      {"engine/backend", {"kernels", "engine/trace", "engine/config", "engine/model"}},
      {"engine/exec",
       {"kernels", "engine/trace", "engine/config", "engine/model", "engine/backend"}},
      {"analysis/metrics", {"kernels/base", "kernels/plan", "engine/trace"}},
      {"analysis/compare",
       {"kernels/base", "kernels/plan", "engine/trace", "engine/config", "analysis/metrics"}},
      {"analysis/capture",
       {"kernels/base", "kernels/plan", "engine/trace", "engine/config", "analysis/metrics",
        "analysis/compare"}},
      {"analysis/report",
       {"kernels/base", "kernels/plan", "engine/trace", "engine/config", "analysis/metrics",
        "analysis/compare", "analysis/capture"}},
      {"analysis/import", {"kernels/base"}},
      // Logits of other programs come as safetensors and GGUF, whose readers are the engine's. The
      // window does not link this room.
      {"analysis/import/logits",
       {"kernels/base", "kernels/plan", "engine/trace", "engine/config", "engine/model",
        "analysis/metrics", "analysis/compare", "analysis/capture", "analysis/import",
        "analysis/responses"}},
      {"analysis/responses",
       {"kernels/base", "kernels/plan", "engine/trace", "engine/config", "analysis/metrics",
        "analysis/compare", "analysis/import"}},
      {"analysis/probe",
       {"kernels/base", "kernels/plan", "engine/trace", "engine/config", "analysis/metrics",
        "analysis/compare", "analysis/import", "analysis/responses"}},
      {"app/probe", {"kernels/base", "analysis/import", "analysis/probe"}},
      {"app/cli", {"kernels", "engine", "analysis", "app/probe"}},
      {"ui", {"kernels/base", "kernels/plan", "engine/trace", "engine/config", "analysis"}},
      {"app/gui", {"kernels/base", "engine/trace", "engine/config", "analysis", "ui"}},
  };
  return table;
}

bool under(std::string_view path, std::string_view room) {
  return path.size() > room.size() && path.starts_with(room) && path[room.size()] == '/';
}

const Room* room_of(std::string_view path) {
  const Room* best = nullptr;
  for (const Room& room : rooms()) {
    if (under(path, room.name) && (best == nullptr || room.name.size() > best->name.size()))
      best = &room;
  }
  return best;
}

std::optional<std::string> quoted_include(const std::string& line) {
  const auto first = line.find_first_not_of(" \t");
  if (first == std::string::npos || line.compare(first, 8, "#include") != 0) return std::nullopt;
  const auto begin = line.find('"');
  if (begin == std::string::npos) return std::nullopt;
  const auto end = line.find('"', begin + 1);
  return line.substr(begin + 1, end - begin - 1);
}

bool allowed(const std::string& from, const std::string& include) {
  const Room* room = room_of(from);
  const Room* target = room_of(include);
  if (target == nullptr) return true;  // a file beside, generated, or of a library
  // kernels/<operation> sees itself and what its row lists, not other operations.
  if (room->name == "kernels" && target->name == "kernels") {
    const auto own = from.substr(0, from.find('/', sizeof("kernels/") - 1) + 1);
    return include.starts_with(own) || include.starts_with("kernels/softmax/");
  }
  if (room == target) return true;
  for (const std::string_view prefix : room->sees) {
    if (under(include, prefix)) return true;
  }
  return false;
}

std::vector<std::string> source_files() {
  const fs::path root(DRIFTSCOPE_SOURCE_DIR);
  std::vector<std::string> files;
  for (const char* top : {"kernels", "engine", "analysis", "ui", "app"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      const auto extension = entry.path().extension();
      if (extension == ".h" || extension == ".cpp" || extension == ".cu" || extension == ".cuh") {
        files.push_back(fs::relative(entry.path(), root).generic_string());
      }
    }
  }
  return files;
}

TEST(IncludeDirection, PointsOneWayOnly) {
  const fs::path root(DRIFTSCOPE_SOURCE_DIR);
  std::size_t includes = 0;
  for (const std::string& file : source_files()) {
    ASSERT_NE(room_of(file), nullptr) << file << " is in no room";
    std::ifstream in(root / file);
    for (std::string line; std::getline(in, line);) {
      const auto include = quoted_include(line);
      if (!include) continue;
      ++includes;
      EXPECT_TRUE(allowed(file, *include)) << file << " must not include " << *include;
    }
  }
  EXPECT_GT(includes, 100U);
}

TEST(IncludeDirection, TheCheckItselfRefusesWrongArrows) {
  EXPECT_FALSE(allowed("kernels/plan/x.h", "engine/config/knob.h"));
  EXPECT_FALSE(allowed("kernels/matmul/x.cpp", "kernels/attention/attention.h"));
  EXPECT_FALSE(allowed("engine/exec/x.cpp", "analysis/compare/comparison.h"));
  EXPECT_FALSE(allowed("analysis/compare/x.cpp", "engine/exec/lockstep.h"));
  EXPECT_FALSE(allowed("ui/views/x.cpp", "engine/model/checkpoint.h"));
  EXPECT_TRUE(allowed("app/cli/x.cpp", "engine/exec/lockstep.h"));
}

TEST(IncludeDirection, OnlyPlotsIncludeQCustomPlotAndTheHeadlessProgramNoQt) {
  const fs::path root(DRIFTSCOPE_SOURCE_DIR);
  for (const std::string& file : source_files()) {
    std::ifstream in(root / file);
    for (std::string line; std::getline(in, line);) {
      if (!line.starts_with("#include")) continue;
      if (line.find("qcustomplot") != std::string::npos) {
        EXPECT_TRUE(file.starts_with("ui/plots/")) << file;
      }
      const auto angle = line.find("<Q");
      if (angle != std::string::npos) {
        EXPECT_TRUE(file.starts_with("ui/") || file.starts_with("app/gui/"))
            << file << ": " << line;
      }
    }
  }
}

TEST(Licences, EveryFileNamesTheLicenceOfItsRoom) {
  const fs::path root(DRIFTSCOPE_SOURCE_DIR);
  for (const std::string& file : source_files()) {
    std::ifstream in(root / file);
    std::string first;
    std::getline(in, first);
    const bool window = file.starts_with("ui/") || file.starts_with("app/gui/");
    EXPECT_NE(first.find(window ? "GPL-3.0-or-later" : "Apache-2.0"), std::string::npos)
        << file << ": first line is \"" << first << "\"";
  }
}

}  // namespace
