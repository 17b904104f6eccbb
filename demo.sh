#!/usr/bin/env bash
# One command from a fresh clone to two runs of one prompt that part: installs what is missing,
# builds, runs the sample model under two configurations, and writes out/demo.h5, plots and a page.
set -euo pipefail
cd "$(dirname "$0")"
. cmake/debian.sh

# shellcheck disable=SC2086
install_missing $BUILD_PACKAGES $GUI_PACKAGES
build_units release -- driftscope driftscope-gui

driftscope=build/release/app/cli/driftscope
export DRIFTSCOPE_GUI=$PWD/build/release/app/gui/driftscope-gui
mkdir -p out

echo
echo "One prompt, greedy, the same configuration twice: alone (A), and in a batch with seven other"
echo "requests (B). Kernels are chosen by the number of rows in flight, as GPU libraries do."
echo
"$driftscope" run --model samples/model --prompt "Blessed are they that" \
  --a hf-eager-like --b hf-eager-like --set-b neighbours=7 \
  --steps 96 --taps layers --reference --force -o out/demo.h5
"$driftscope" export out/demo.h5 --to html -o out/demo.html --force --quiet
"$driftscope" export out/demo.h5 --to png -o out/demo.png --force --quiet
echo
echo "Written: out/demo.h5 (capture), out/demo.png (plots), out/demo.html (page)"

if [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] && [ -z "${CI:-}" ] && [ "${1:-}" != --no-window ]; then
  echo "Opening the window; close it to return."
  exec "$DRIFTSCOPE_GUI" out/demo.h5
fi
echo "No display: look at out/demo.html, or later run: $driftscope gui out/demo.h5"
