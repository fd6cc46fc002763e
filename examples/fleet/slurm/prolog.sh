#!/usr/bin/env bash
# Prolog of slurmd (Prolog=/etc/slurm/prolog.d/dma-copy.sh), as root on each node before the job starts: makes the job's
# directory in the share "jobs", and starts the daemon. A prolog that fails drains the node.
set -euo pipefail

readonly jobs=/var/lib/dma-copy/jobs
readonly job=${SLURM_JOB_ID:?}

# The daemon writes there, and the user of the job reads.
install -d -o dma-copy -g dma-copy -m 0711 "$jobs"
install -d -o dma-copy -g "$(id -g "${SLURM_JOB_UID:?}")" -m 2750 "$jobs/$job"
systemctl start dma-copy
