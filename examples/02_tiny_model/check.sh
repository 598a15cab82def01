#!/usr/bin/env bash
# Trains twice, once with a worker killed on the way: both runs end with the same bits. Takes the program.
set -euo pipefail
program=$1
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

field() { sed -nE "s/^ *\"$2\": \"?([^\",]*)\"?,?$/\1/p" "$work/$1.json"; }

"$program" --workers 2 --steps 200 --quiet --summary "$work/calm.json"
"$program" --workers 2 --steps 200 --quiet --summary "$work/killed.json" --fault kill:worker=1@step=100

[[ $(field killed restarts) == 1 ]] || { echo "expected one restart, saw $(field killed restarts)"; exit 1; }
[[ $(field killed survivors_kept) == true ]] || { echo "a survivor lost its process"; exit 1; }
[[ -n $(field calm state_digest) && $(field calm state_digest) == "$(field killed state_digest)" ]] ||
  { echo "digests differ: $(field calm state_digest) and $(field killed state_digest)"; exit 1; }
echo "one kill, one restart, the same bits: $(field calm state_digest), accuracy $(field calm accuracy)"
