#!/usr/bin/env bash
# On a machine with a GPU, nvcc, g++ and CMake: builds the CUDA module and the engine, compares the
# device with the host bit for bit, runs the self-tests and benches, and writes one JSON and one text
# report. About eight minutes; needs no network and no installed library (see pack.sh).
#   tests/device/run.sh [FOLDER FOR THE REPORTS]
# Exit codes: 0 all equal, 1 something differs, 2 something is missing, 5 no device or it failed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/out}
build=${DRIFTSCOPE_DEVICE_BUILD:-$here/build}
bench_seconds=${DRIFTSCOPE_BENCH_SECONDS:-60}

missing() {
  echo "run.sh: $1" >&2
  exit 2
}

for tool in g++ cmake make; do
  command -v "$tool" >/dev/null || missing "$tool is not installed"
done
nvcc=$(command -v nvcc || true)
[ -n "$nvcc" ] || { [ -x /usr/local/cuda/bin/nvcc ] && nvcc=/usr/local/cuda/bin/nvcc; } ||
  missing "nvcc is neither in PATH nor in /usr/local/cuda/bin; install the CUDA toolkit"
command -v nvidia-smi >/dev/null ||
  missing "no nvidia-smi: this machine has no NVIDIA driver, so there is no GPU to test"
architecture=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -1 | tr -d '. ') || true
case $architecture in
  '' | *[!0-9]*) missing "nvidia-smi reports no GPU" ;;
esac
if [ ! -d "$here/carry/fmt" ]; then
  "$here/pack.sh" || missing "run tests/device/pack.sh on a machine with the header libraries, and bring tests/device/carry along"
fi

mkdir -p "$out"
echo "Building for compute capability $architecture"
log=$out/build.log
if ! { cmake -S "$here" -B "$build" -DCMAKE_CUDA_COMPILER="$nvcc" \
         -DCMAKE_CUDA_ARCHITECTURES="$architecture" &&
       cmake --build "$build" -j"$(nproc)"; } >"$log" 2>&1; then
  tail -30 "$log" >&2
  missing "the build failed; the whole log is in $log"
fi

status=0
"$build/device_report" "$build/libdriftscope_cuda.so" --json "$out/report.json" \
  --bench "$bench_seconds" 2>&1 | tee "$out/report.txt" || status=${PIPESTATUS[0]}
echo "Reports: $out/report.json, $out/report.txt"
exit "$status"
