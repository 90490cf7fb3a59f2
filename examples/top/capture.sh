#!/usr/bin/env bash
# Prints what the README shows: `--once`, and the live view in a real terminal of 80 columns and 24 rows.
# The state is made by real guards (examples/demo). Needs tmux.
set -euo pipefail
cd "$(dirname "$0")"

command -v tmux > /dev/null || { echo "NOT RUN: tmux is missing" >&2; exit 1; }
cargo build --quiet -p bizar-top --bins --examples
target=$(cargo metadata --format-version 1 --no-deps | python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')

home=$(mktemp -d)
socket="bizar-top-$$"
trap 'tmux -L "$socket" kill-server 2> /dev/null || true; rm -rf "$home"' EXIT
"$target/debug/examples/demo" "$home"

echo '$ bizar-top --once'
HOME="$home" "$target/debug/bizar-top" --once
echo

# A server of its own, without anybody's settings. One window: the program, then a shell that shows what it left behind.
tmux -L "$socket" -f /dev/null new-session -d -x 80 -y 24 "HOME=$home $target/debug/bizar-top; echo ended with \$?; read -r _"
screen() { tmux -L "$socket" capture-pane -p; }
until_seen() {
    for _ in $(seq 100); do
        if screen | grep -qF -- "$1"; then return; fi
        sleep 0.1
    done
    echo "never saw: $1" >&2
    screen >&2
    exit 1
}

until_seen "WAITS FOR"
screen
echo
tmux -L "$socket" send-keys j Enter
until_seen "Last calls"
screen
tmux -L "$socket" send-keys Escape
until_seen "WAITS FOR"
tmux -L "$socket" resize-window -x 120 -y 30
until_seen "LADDER"
tmux -L "$socket" resize-window -x 80 -y 24
tmux -L "$socket" send-keys / c o d e x Enter
until_seen "/codex"
tmux -L "$socket" send-keys q
until_seen "ended with 0"
if screen | grep -qF "SESSION"; then
    echo "the screen was not given back" >&2
    exit 1
fi
