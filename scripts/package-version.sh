#!/usr/bin/env bash
# package-version.sh VERSION: the version of a package for a version of the program, so that package managers sort it
# right: a pre-release is earlier than its release (~), a commit after a tag is later than the tag (+), and a version
# without a tag is earlier than all others.
set -euo pipefail

readonly version=${1#v}
readonly number='[0-9]+\.[0-9]+\.[0-9]+'
readonly pre='-([0-9A-Za-z.]+)'
readonly commit='-([0-9]+)-(g[0-9a-f]+)(-dirty)?'

if [[ $version =~ ^($number)$ ]]; then
	echo "$version"
elif [[ $version =~ ^($number)$commit$ ]]; then
	echo "${BASH_REMATCH[1]}+${BASH_REMATCH[2]}.${BASH_REMATCH[3]}${BASH_REMATCH[4]:+.dirty}"
elif [[ $version =~ ^($number)-dirty$ ]]; then
	echo "${BASH_REMATCH[1]}+0.dirty"
elif [[ $version =~ ^($number)$pre$ ]]; then
	echo "${BASH_REMATCH[1]}~${BASH_REMATCH[2]}"
elif [[ $version =~ ^($number)$pre$commit$ ]]; then
	echo "${BASH_REMATCH[1]}~${BASH_REMATCH[2]}+${BASH_REMATCH[3]}.${BASH_REMATCH[4]}${BASH_REMATCH[5]:+.dirty}"
elif [[ $version =~ ^($number)$pre-dirty$ ]]; then
	echo "${BASH_REMATCH[1]}~${BASH_REMATCH[2]}+0.dirty"
elif [[ $version =~ ^[0-9A-Za-z.-]+$ ]]; then
	echo "0~${version//-/.}"
else
	echo "package-version: '$1' has other characters than letters, digits, dots and dashes" >&2
	exit 1
fi
