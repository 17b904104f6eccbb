// SPDX-License-Identifier: Apache-2.0
// The headless program links no Qt; the window links no engine.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string>

namespace {

struct Close {
  void operator()(std::FILE* file) const { pclose(file); }
};

std::string output_of(const std::string& command) {
  const std::unique_ptr<std::FILE, Close> pipe(popen(command.c_str(), "r"));
  std::string text;
  std::array<char, 4096> buffer{};
  while (pipe &&
         std::fgets(buffer.data(), static_cast<int>(buffer.size()), pipe.get()) != nullptr) {
    text += buffer.data();
  }
  return text;
}

std::string needed_libraries(const std::string& program) {
  return output_of("readelf -d '" + program + "' | grep NEEDED");
}
[[maybe_unused]] std::string defined_functions(const std::string& program) {
  return output_of("nm -C --defined-only '" + program + "'");
}

TEST(Linkage, HeadlessProgramLinksNoQt) {
  const auto libraries = needed_libraries(DRIFTSCOPE_CLI_PATH);
  ASSERT_NE(libraries.find("libstdc++"), std::string::npos) << "readelf gave: " << libraries;
  EXPECT_EQ(libraries.find("Qt"), std::string::npos) << libraries;
  EXPECT_EQ(libraries.find("qcustomplot"), std::string::npos) << libraries;
  EXPECT_EQ(libraries.find("cuda"), std::string::npos) << libraries;
}

TEST(Linkage, WindowLinksNoEngine) {
#ifndef DRIFTSCOPE_GUI_PATH
  GTEST_SKIP() << "driftscope-gui is not built: Qt 6 or QCustomPlot was not found";
#else
  // What the check looks for exists in the headless program, so its absence means something.
  const auto headless = defined_functions(DRIFTSCOPE_CLI_PATH);
  const auto window = defined_functions(DRIFTSCOPE_GUI_PATH);
  for (const char* symbol : {"driftscope::run_lockstep(", "driftscope::ModelCheckpoint::open(",
                             "driftscope::matmul(", "driftscope::Tokenizer::open("}) {
    EXPECT_NE(headless.find(symbol), std::string::npos) << symbol;
    EXPECT_EQ(window.find(symbol), std::string::npos) << symbol;
  }
  EXPECT_EQ(needed_libraries(DRIFTSCOPE_GUI_PATH).find("cuda"), std::string::npos);
#endif
}

}  // namespace
