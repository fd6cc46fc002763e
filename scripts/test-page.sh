#!/usr/bin/env bash
# Opens the status page of a real daemon in a headless browser, and writes pictures of it to a directory if one is
# named. Installs Chromium where no browser is found (Debian).
set -euo pipefail
cd "$(dirname "$0")/.."

pictures=${1:-}
[ -z "$pictures" ] || { mkdir -p "$pictures" && pictures=$(realpath "$pictures"); }

find_browser() {
	local name
	for name in chromium google-chrome chromium-browser; do
		! command -v "$name" || return 0
	done
	return 1
}

install_browser() {
	local as_root=()
	[ "$(id -u)" -eq 0 ] || as_root=(sudo)
	"${as_root[@]}" apt-get update -q
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends chromium
}

browser=$(find_browser) || { install_browser && browser=$(find_browser); }
cd tools
"${GO:-go}" test -count=1 ./page -browser="$browser" -screenshots="$pictures"
