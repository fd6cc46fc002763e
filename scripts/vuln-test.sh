#!/usr/bin/env bash
# Tests that scripts/vuln.sh tells a vulnerability from a database that cannot be read and from a scan that fails, with
# databases in local files.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# database NAME SYMBOL: makes a database with one vulnerability, of a function of package strings in every release.
database() {
	local dir=$work/$1 modified=2026-01-01T00:00:00Z
	mkdir -p "$dir/index" "$dir/ID"
	printf '{"modified": "%s"}\n' "$modified" > "$dir/index/db.json"
	printf '[{"path": "stdlib", "vulns": [{"id": "GO-2026-9999", "modified": "%s"}]}]\n' "$modified" \
		> "$dir/index/modules.json"
	printf '[{"id": "GO-2026-9999", "modified": "%s"}]\n' "$modified" > "$dir/index/vulns.json"
	cat > "$dir/ID/GO-2026-9999.json" <<- JSON
		{
		  "schema_version": "1.3.1", "id": "GO-2026-9999", "modified": "$modified", "published": "$modified",
		  "summary": "A vulnerability of a test", "details": "None.",
		  "affected": [{
		    "package": {"name": "stdlib", "ecosystem": "Go"},
		    "ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}],
		    "ecosystem_specific": {"imports": [{"path": "strings", "symbols": ["$2"]}]}
		  }],
		  "database_specific": {"url": "https://pkg.go.dev/vuln/GO-2026-9999"}
		}
	JSON
}

# expect CODE TEXT DATABASE PACKAGE: the exit code, and a text of the output.
expect() {
	local code=0
	GOVULNDB=$3 scripts/vuln.sh "$4" > "$work/output" 2>&1 || code=$?
	if [ "$code" != "$1" ] || ! grep -qF -- "$2" "$work/output"; then
		echo "vuln-test: $3, $4: exit code $code, want $1, with the text '$2':" >&2
		cat "$work/output" >&2
		failures=$((failures + 1))
	fi
}

database called Builder.WriteString
database not-called ToTitleSpecial
expect 3 "GO-2026-9999" "file://$work/called" ./internal/quote
expect 0 "No vulnerabilities found" "file://$work/not-called" ./internal/quote
expect 75 "NOT CHECKED: the database" "file://$work/absent" ./internal/quote
expect 75 "NOT CHECKED: the database" https://127.0.0.1:1 ./internal/quote
expect 1 "the scan failed with exit code 1" "file://$work/called" ./internal/no-such-package
[ "$failures" -eq 0 ] || exit 1
