# Sourced by demo.sh and test.sh: installs what is missing through apt.
# shellcheck shell=bash

BUILD_PACKAGES="g++ cmake ninja-build pkg-config ccache nlohmann-json3-dev libcli11-dev libfmt-dev
  libexpected-dev libpcre2-dev libutf8proc-dev libssl-dev libhdf5-dev libcurl4-openssl-dev"
GUI_PACKAGES="qt6-base-dev qt6-svg-dev libqcustomplot-dev libgl1-mesa-dev"
TEST_PACKAGES="libgtest-dev libgmock-dev libboost-context-dev libcpp-httplib-dev binutils hdf5-tools python3-h5py
  python3-numpy python3-jinja2"

# install_missing PACKAGE…: says what it installs; quiet when all is there.
install_missing() {
  local missing=() package
  for package in "$@"; do
    # Not through a pipe: with pipefail an early end of the reader would count as missing.
    [ "$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null)" = 'install ok installed' ] || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  if ! command -v apt-get >/dev/null; then
    echo "These packages are missing, and apt-get is not here to install them: ${missing[*]}" >&2
    return 1
  fi
  local sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "Run as root: apt-get install ${missing[*]}" >&2; return 1; }
    sudo=(sudo)
  fi
  echo "Installing through apt (a few minutes): ${missing[*]}"
  local log; log=$(mktemp)
  if ! { "${sudo[@]}" apt-get -q update &&
         "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends \
           "${missing[@]}"; } >"$log" 2>&1; then
    tail -20 "$log" >&2
    echo "apt-get failed; the whole log is in $log" >&2
    return 1
  fi
  rm -f "$log"
}

# build PRESET [CMAKE-ARGUMENT…] [-- TARGET…]
build() {
  local preset=$1; shift
  local arguments=() targets=()
  while [ $# -gt 0 ] && [ "$1" != -- ]; do arguments+=("$1"); shift; done
  [ $# -gt 0 ] && shift
  targets=("$@")
  local log; log=$(mktemp)
  if ! cmake --preset "$preset" "${arguments[@]}" >"$log" 2>&1; then
    cat "$log" >&2; rm -f "$log"; return 1
  fi
  grep -E '^-- (CUDA [0-9]|No CUDA|driftscope-gui:)' "$log" | sed 's/^-- //' || true
  rm -f "$log"
  echo "Building $preset (minutes at first, seconds later; interrupted, it goes on where it was)"
  if [ ${#targets[@]} -gt 0 ]; then
    cmake --build "build/$preset" --target "${targets[@]}" -- -j"$(nproc)"
  else
    cmake --build "build/$preset" -- -j"$(nproc)"
  fi
}

# build_units PRESET [CMAKE-ARGUMENT…] [-- TARGET…]: several files of a room at a time; where their
# names clash, file by file.
build_units() {
  local preset=$1; shift
  build "$preset" -DDRIFTSCOPE_UNITY=ON "$@" && return 0
  echo "Units of several files failed to build; once more, file by file" >&2
  build "$preset" -DDRIFTSCOPE_UNITY=OFF "$@"
}
