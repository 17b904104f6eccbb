#!/usr/bin/env bash
# Copies the header libraries that tests/device/run.sh builds with into tests/device/carry/ (ignored
# by git), so that a machine without a package registry can build. Run it where they are installed.
set -euo pipefail
cd "$(dirname "$0")"
include=${1:-/usr/include}
rm -rf carry
mkdir -p carry
for library in fmt nlohmann tl; do
  if [ ! -d "$include/$library" ]; then
    echo "pack.sh: $include/$library is not there; install libfmt-dev, nlohmann-json3-dev and libexpected-dev" >&2
    exit 1
  fi
  cp -rL "$include/$library" carry/
done
echo "tests/device/carry: $(du -sh carry | cut -f1)"
