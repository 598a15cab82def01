#!/usr/bin/env bash
# Tests the parts of scripts/setup that decide what to install and from where. Installs nothing.
set -euo pipefail
root=$1
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
failures=0

check() { # NAME EXPECTED ACTUAL
  if [[ $2 == "$3" ]]; then
    printf 'ok    %s\n' "$1"
  else
    printf 'FAIL  %s\n  expected: %s\n  actual:   %s\n' "$1" "${2//$'\n'/ | }" "${3//$'\n'/ | }"
    failures=$((failures + 1))
  fi
}

# shellcheck source=scripts/setup
source "$root/scripts/setup"

# shellcheck disable=SC2317  # setup's functions call it
# A stand-in for the package data base: $work/status has lines "package status version".
dpkg-query() {
  local package=${*: -1}
  awk -v package="$package" '$1 == package { found = 1; printf "%s %s", $2, $3 } END { exit !found }' \
    "$work/status"
}

everything() {
  local package
  for package in "${packages[@]}"; do
    case $package in
    catch2) echo "catch2 installed 3.7.1-0.4~bpo12+1" ;;
    *) echo "$package installed 1.0" ;;
    esac
  done
}

everything >"$work/status"
check "nothing is missing where everything is installed" "" "$(missing_packages)"

everything | grep -v '^cmake ' >"$work/status"
check "a package that is unknown is missing" "cmake" "$(missing_packages)"

everything | sed 's/^libucx-dev installed/libucx-dev config-files/' >"$work/status"
check "a package that was removed but left its settings is missing" "libucx-dev" "$(missing_packages)"

everything | sed 's/^catch2 .*/catch2 installed 2.13.10-1/' >"$work/status"
check "an old catch2 counts as missing" "catch2" "$(missing_packages)"

: >"$work/status"
check "on a bare machine everything is missing" "${#packages[@]}" "$(missing_packages | wc -l)"

everything >"$work/status"
wanted=("${packages[@]}")
choose_packages --fuzz
check "--fuzz wants a compiler with libFuzzer as well" "clang-14 libclang-rt-14-dev" \
  "$(missing_packages | tr '\n' ' ' | sed 's/ $//')"
wanted=("${packages[@]}")
check "plain setup asks for no baseline" "0" \
  "$(printf '%s\n' "${wanted[@]}" | grep -cE 'grpc|gloo|mpi' || true)"
choose_packages --baselines
check "--baselines adds what only baselines need" "${baseline_packages[*]}" \
  "$(missing_packages | tr '\n' ' ' | sed 's/ $//')"
wanted=("${packages[@]}")
check "an unknown option is refused" "2" "$( (choose_packages --baseline 2>/dev/null) || echo $?)"

mkdir -p "$work/deb822/sources.list.d" "$work/oneline/sources.list.d" "$work/none/sources.list.d"
cat >"$work/deb822/sources.list.d/a.sources" <<'SOURCES'
Types: deb
URIs: https://mirror.test/security
Suites: bookworm-security
Components: main
Signed-By: /keys/security.gpg

Types: deb deb-src
# a comment
URIs: https://mirror.test/debian
Suites: bookworm bookworm-updates
Components: main contrib
Check-Valid-Until: no
Signed-By: /keys/debian.gpg
SOURCES
check "a deb822 entry keeps its address, key and options" "sources
Types: deb
URIs: https://mirror.test/debian
Suites: bookworm-backports
Components: main
Check-Valid-Until: no
Signed-By: /keys/debian.gpg" "$(backports_entry "$work/deb822")"

cat >"$work/oneline/sources.list" <<'LIST'
# deb https://mirror.test/commented bookworm main
deb-src https://mirror.test/source bookworm main
deb https://mirror.test/security bookworm-security main
deb [signed-by=/keys/debian.gpg arch=amd64] https://mirror.test/debian bookworm main contrib
LIST
check "a one-line entry keeps its address and options" "list
deb [signed-by=/keys/debian.gpg arch=amd64] https://mirror.test/debian bookworm-backports main" \
  "$(backports_entry "$work/oneline")"

cat >"$work/none/sources.list.d/a.sources" <<'SOURCES'
Types: deb
URIs: https://mirror.test/debian
Suites: bookworm
Components: main
Enabled: no
SOURCES
check "where there is no entry for the release nothing is made up" "" "$(backports_entry "$work/none")"

if grep -Eq 'https?://' "$root/scripts/setup"; then
  check "setup names no package server" "none" "one"
fi

exit $((failures > 0))
