// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/isa.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace driftscope {
namespace {

// Restores DRIFTSCOPE_ISA at the end of a test.
class IsaEnvironment {
 public:
  IsaEnvironment() {
    if (const char* value = std::getenv("DRIFTSCOPE_ISA")) m_saved = value;
  }
  ~IsaEnvironment() {
    if (m_saved) {
      ::setenv("DRIFTSCOPE_ISA", m_saved->c_str(), 1);
    } else {
      ::unsetenv("DRIFTSCOPE_ISA");
    }
  }
  IsaEnvironment(const IsaEnvironment&) = delete;
  IsaEnvironment& operator=(const IsaEnvironment&) = delete;
  void set(const char* value) { ::setenv("DRIFTSCOPE_ISA", value, 1); }
  void clear() { ::unsetenv("DRIFTSCOPE_ISA"); }

 private:
  std::optional<std::string> m_saved;
};

TEST(Isa, NamesRoundTrip) {
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    EXPECT_EQ(isa_from_name(isa_name(isa)), isa);
  }
  EXPECT_EQ(isa_name(Isa::avx512), "avx512");
  EXPECT_EQ(isa_from_name("AVX2"), std::nullopt);
  EXPECT_EQ(isa_from_name(""), std::nullopt);
}

TEST(Isa, TheDetectedOneRunsHereAndIsTheWidest) {
  IsaEnvironment environment;
  environment.clear();
  const Isa widest = detect_isa();
  EXPECT_TRUE(isa_supported(Isa::scalar));
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    EXPECT_EQ(isa_supported(isa), isa <= widest) << isa_name(isa);
  }
}

TEST(Isa, TheEnvironmentLowersButNeverRaises) {
  IsaEnvironment environment;
  environment.clear();
  const Isa widest = detect_isa();
  environment.set("scalar");
  EXPECT_EQ(detect_isa(), Isa::scalar);
  environment.set("avx512");
  EXPECT_EQ(detect_isa(), widest);
  environment.set("avx2");
  EXPECT_EQ(detect_isa(), widest < Isa::avx2 ? widest : Isa::avx2);
  environment.set("fastest");
  EXPECT_EQ(detect_isa(), widest);
}

}  // namespace
}  // namespace driftscope
