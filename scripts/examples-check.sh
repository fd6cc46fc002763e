#!/usr/bin/env bash
# Checks the examples in examples/fleet, each by the tool of its own world: bash and shellcheck, ansible-playbook and
# ansible-lint, and strict decoding of the Kubernetes manifests; and examples/grafana against the metrics of a daemon.
# No network is used, apart from Go modules. Debian: shellcheck, ansible-lint.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly examples=examples/fleet

for tool in shellcheck ansible-playbook ansible-lint; do
	command -v "$tool" > /dev/null || {
		echo "examples-check: $tool is missing: install the packages shellcheck and ansible-lint" >&2
		exit 1
	}
done

for script in "$examples"/slurm/*.sh; do
	bash -n "$script"
done
shellcheck "$examples"/slurm/*.sh

# Ansible's directory for temporary and downloaded files, which it would else make in the home directory.
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
export ANSIBLE_HOME="$home" ANSIBLE_LOCAL_TEMP="$home/tmp" ANSIBLE_NOCOWS=1
for playbook in site push; do
	(cd "$examples/ansible" && ansible-playbook --syntax-check -i inventory.ini "$playbook.yml" > /dev/null)
done
(cd "$examples/ansible" &&
	XDG_CACHE_HOME="$home" ansible-lint --offline --strict --profile production --nocolor \
		site.yml push.yml roles/dma_copy)

(cd tools && "${GO:-go}" test -count=1 ./manifests ./dashboards)
