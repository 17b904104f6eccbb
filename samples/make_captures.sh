#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the saved captures beside the sample model again. Run from anywhere; needs the release build.
set -euo pipefail
cd "$(dirname "$0")/.."
driftscope=build/release/app/cli/driftscope
planted=out/planted
rm -rf "$planted"
mkdir -p out

# The same configuration alone and among seven other requests: the answers part at a near-tie.
"$driftscope" run --model samples/model --prompt "Blessed are they that" \
  --a hf-eager-like --b hf-eager-like --set-b neighbours=7 \
  --steps 56 --taps layers --deflate 6 --force -q -o samples/captures/neighbours.h5

# Nearly exact arithmetic against bf16.
"$driftscope" run --model samples/model --prompt "And the king said" \
  --a reference-f32 --b bf16-invariant \
  --steps 32 --taps layers --deflate 6 --force -q -o samples/captures/precision.h5

# One weight of layer 2 changed by one unit in the last place.
samples/plant_fault.py --model samples/model --out "$planted" \
  --tensor model.layers.2.mlp.down_proj.weight --index 4000 --ulps 1
"$driftscope" run --model samples/model --model-b "$planted" --prompt "And the king said" \
  --a reference-f32 --steps 24 --taps layers --deflate 6 --force -q -o samples/captures/planted.h5
