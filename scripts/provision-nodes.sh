#!/usr/bin/env bash
# Makes nodes by the dozen: a certificate for each name of a list.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: scripts/provision-nodes.sh [--with-keys] [--address HOST:PORT] [--state-dir DIR] NAMES OUT

For each name of the file NAMES (one a line; # begins a comment) a folder OUT/<name> with what
that machine needs. Run it beside the gateway, which must be running.

By default the key of each machine stays there. On each machine first:
    tidings-node request --out <name>.csr
Bring the requests to OUT, run this script, carry OUT/<name> back, and there:
    tidings-node join --certificate <name>

With --with-keys no request is needed: the keys are made here and lie in OUT/<name>. Whoever
reads such a folder is that node, so carry it by a way that you trust, and delete it.

--address     where the nodes find the gateway; else where it listens
--state-dir   the gateway's state directory; else $TIDINGS_STATE_DIR, else ~/.tidings
TIDINGS=FILE  the program; else tidings from the search path

A folder that is complete already is left alone, so the script can be run again.
Exit codes: 0 every name has its folder, 1 some have not, 2 usage.
TEXT
}

with_keys=no
options=()
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help)
      usage
      exit 0
      ;;
    --with-keys) with_keys=yes ;;
    --address | --state-dir)
      if [ $# -lt 2 ]; then
        usage >&2
        exit 2
      fi
      options+=("$1" "$2")
      shift
      ;;
    --)
      shift
      break
      ;;
    -*)
      printf 'error: there is no option %s\n' "$1" >&2
      usage >&2
      exit 2
      ;;
    *) break ;;
  esac
  shift
done
if [ $# -ne 2 ]; then
  usage >&2
  exit 2
fi
names=$1
out=$2
tidings=${TIDINGS:-tidings}

if ! [ -r "$names" ]; then
  printf 'error: cannot read %s\n' "$names" >&2
  exit 2
fi
if ! command -v "$tidings" >/dev/null; then
  printf 'error: there is no program %s\nhint: TIDINGS=FILE names it\n' "$tidings" >&2
  exit 2
fi

# Nobody but the owner gets to read what is made here.
umask 077
mkdir -p "$out"
chmod 700 "$out"

# issue NAME: a folder for one machine. False where there is none afterwards.
issue() {
  local name=$1 folder=$out/$1 key=(--with-key)
  if ! [[ $name =~ ^[a-z0-9-]{1,32}$ ]]; then
    printf '%s: no host name: 1 to 32 of a-z, 0-9 and -\n' "$name" >&2
    return 1
  fi
  if [ -e "$folder/node.json" ]; then
    printf '%s: there already\n' "$name" >&2
    return 0
  fi
  if [ "$with_keys" = no ]; then
    key=(--request "$out/$name.csr")
    if ! [ -e "$out/$name.csr" ]; then
      printf '%s: no request %s; on that machine: tidings-node request --out %s.csr\n' \
        "$name" "$out/$name.csr" "$name" >&2
      return 1
    fi
  fi
  if ! "$tidings" cert issue "$name" "${key[@]}" --out "$folder" \
    ${options[@]+"${options[@]}"} >/dev/null; then
    printf '%s: not issued\n' "$name" >&2
    return 1
  fi
  printf '%s\n' "$folder"
}

made=0
missing=0
while IFS= read -r line || [ -n "$line" ]; do
  name=${line%%#*}
  name=${name//[[:space:]]/}
  [ -n "$name" ] || continue
  if issue "$name"; then
    made=$((made + 1))
  else
    missing=$((missing + 1))
  fi
done <"$names"
printf 'folders %d, missing %d\n' "$made" "$missing" >&2
[ "$missing" -eq 0 ]
