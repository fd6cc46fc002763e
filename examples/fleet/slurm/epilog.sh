#!/usr/bin/env bash
# Epilog of slurmd (Epilog=/etc/slurm/epilog.d/dma-copy.sh), as root on each node after the job: removes what prolog.sh
# has made.
set -euo pipefail

readonly jobs=/var/lib/dma-copy/jobs
readonly job=${SLURM_JOB_ID:?}

case $job in
*[!0-9]*)
	echo "epilog: not a job: $job" >&2
	exit 1
	;;
esac
rm -rf --one-file-system -- "${jobs:?}/$job"
