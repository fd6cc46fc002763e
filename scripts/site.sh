#!/usr/bin/env bash
# Builds the site of the Markdown pages in build/site/dist. Needs node and npm, and once npm's registry.
set -euo pipefail
cd "$(dirname "$0")/.."

site=build/site
mkdir -p "$site/.vitepress" "$site/src"
find "$site/src" "$site/.vitepress/theme" -type f -delete 2> /dev/null || true
cp tools/site/package.json tools/site/package-lock.json "$site/"
cp -r tools/site/config.mjs tools/site/theme "$site/.vitepress/"
git -c safe.directory='*' ls-files -z '*.md' 'docs/*.svg' ':!.github' ':!:examples' |
	xargs -0 cp --parents -t "$site/src"
cp README.md "$site/src/index.md"

cd "$site"
cmp -s package-lock.json node_modules/.package-lock.from || npm ci --no-audit --no-fund --ignore-scripts
cp package-lock.json node_modules/.package-lock.from
npx vitepress build .
