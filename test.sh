#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test: first the rooms without the window under
# AddressSanitizer and UndefinedBehaviorSanitizer, then everything, the window's tests offscreen.
#   ./test.sh            all
#   ./test.sh --fast     without the sanitizer pass
set -euo pipefail
cd "$(dirname "$0")"
. cmake/debian.sh

# shellcheck disable=SC2086
install_missing $BUILD_PACKAGES $GUI_PACKAGES $TEST_PACKAGES

sanitized=passed
if [ "${1:-}" != --fast ]; then
  build_units asan-ubsan -DDRIFTSCOPE_GUI=OFF
  ctest --test-dir build/asan-ubsan --output-on-failure -j"$(nproc)" || sanitized=failed
fi
build_units release
ctest --test-dir build/release --output-on-failure -j"$(nproc)"
if [ "$sanitized" = failed ]; then
  # Once more and last, so that a log cut to its end still shows what failed and how.
  echo "The sanitizer pass failed; its failed tests once more:" >&2
  ctest --test-dir build/asan-ubsan --rerun-failed --output-on-failure || true
  exit 1
fi
