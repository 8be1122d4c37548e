# shellcheck shell=bash disable=SC2034
# Shared by the scripts beside it: the project's root, packages, builds.
# Everything here talks on stderr; stdout belongs to what the caller runs.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
build_packages=(g++ cmake ninja-build python3 libcli11-dev libmimalloc-dev libre2-dev nlohmann-json3-dev libyaml-cpp-dev libspdlog-dev
  doctest-dev zlib1g-dev)

fail() {
  echo "$(basename "$0"): $*" >&2
  exit 3
}

# quietly COMMAND...: shows what it printed only if it fails.
quietly() {
  local log status=0
  log=$(mktemp)
  "$@" >"$log" 2>&1 || status=$?
  [[ $status -eq 0 ]] || cat "$log" >&2
  rm -f "$log"
  return $status
}

# need PACKAGE...: installs those that are missing. Elsewhere than on Debian and Ubuntu CMake says what is missing.
need() {
  command -v dpkg-query >/dev/null || return 0
  local package missing=() as_root=()
  local installed
  installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
  for package in "$@"; do
    [[ $'\n'$installed$'\n' == *$'\n'"$package installed"$'\n'* ]] || missing+=("$package")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0
  if [[ $(id -u) -ne 0 ]]; then
    command -v sudo >/dev/null || fail "missing packages, and neither root nor sudo to install them: ${missing[*]}"
    as_root=(sudo)
  fi
  echo "installing ${missing[*]}" >&2
  quietly "${as_root[@]}" apt-get update || true # a stale list may still do
  quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    "${missing[@]}" || fail "could not install ${missing[*]}"
}

# build PRESET [TARGET...]: configures where it must, then builds; one at a time per preset.
# (Its || fail switches off set -e inside, hence the || exit.)
build() {
  local preset=$1 folder="$root/build/$1" targets=()
  shift
  [[ $# -eq 0 ]] || targets=(--target "$@")
  mkdir -p "$folder"
  (
    cd "$root"
    exec 9>"$folder/.lock"
    flock 9
    # A folder that came along when the project was moved or copied is of no use.
    grep -qsxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$folder/CMakeCache.txt" ||
      find "$folder" -mindepth 1 ! -name .lock -delete
    if [[ ! -e $folder/.configured || CMakePresets.json -nt $folder/.configured ]]; then
      quietly cmake --preset "$preset" 9>&- || exit
      touch "$folder/.configured"
    fi
    quietly cmake --build --preset "$preset" "${targets[@]}" 9>&-
  ) || fail "the $preset build failed"
}
