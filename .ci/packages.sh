#!/usr/bin/env bash
# Installs what `make test` needs besides Go, on a fresh Debian, Ubuntu or Rocky Linux, as in the containers of CI. With
# the argument `emulation`, `release` or `packages`: what `make test-arm64`, `make release-dry-run` or
# `make test-packages` needs. As root.
set -euo pipefail

# Rocky Linux has headers of UCX in a repository that is off by default; without them the binding of UCX is not built.
test_apt=(ca-certificates gcc g++ libc6-dev make git pkg-config libucx-dev rsync)
test_apt+=(openssh-client openssh-server)
test_apt+=(bash-completion fish zsh mandoc man-db) # without them tests fail where CI is true, as GitHub sets it
test_dnf=(ca-certificates gcc gcc-c++ make git-core pkgconf-pkg-config diffutils findutils rsync)
test_dnf+=(openssh-clients openssh-server)
test_dnf+=(bash-completion zsh man-db) # it has neither fish nor mandoc
release_apt=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
emulation_apt=(qemu-user-static)
packages_apt=(debootstrap lintian rpm rpmlint)

case ${1:-test} in
test) apt=("${test_apt[@]}") dnf=("${test_dnf[@]}") ;;
release) apt=("${test_apt[@]}" "${release_apt[@]}") dnf=() ;;
emulation) apt=("${test_apt[@]}" "${release_apt[@]}" "${emulation_apt[@]}") dnf=() ;;
packages) apt=("${test_apt[@]}" "${release_apt[@]}" "${emulation_apt[@]}" "${packages_apt[@]}") dnf=() ;;
*) echo "usage: .ci/packages.sh [test|emulation|release|packages]" >&2; exit 2 ;;
esac

if command -v apt-get > /dev/null; then
	apt-get update -q
	DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${apt[@]}"
elif command -v dnf > /dev/null && [ "${#dnf[@]}" -gt 0 ]; then
	dnf install -y --setopt=install_weak_deps=False "${dnf[@]}"
else
	echo ".ci/packages.sh: no package manager for this (apt-get; for tests also dnf)" >&2
	exit 1
fi
