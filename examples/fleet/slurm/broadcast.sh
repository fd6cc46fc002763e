#!/usr/bin/env bash
#SBATCH --job-name=broadcast
#SBATCH --nodes=64
#SBATCH --ntasks-per-node=1
#SBATCH --time=00:30:00
#
# Copies a file to each node of the job, as sbcast does, and then runs a step on all of them:
#   sbatch broadcast.sh /shared/model.bin ./train --model
# A daemon on each node has the share "jobs", and prolog.sh makes the directory of the job in it.
set -euo pipefail

readonly file=$1
shift
readonly port=7483
readonly target="jobs/$SLURM_JOB_ID"

# The list of peers, one per line. Names of nodes are resolved here.
peers() {
	local node
	while read -r node; do
		echo "ucx://$node:$port"
	done < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
}

# Code 12 means that some nodes do not have the file: the job cannot run on all of its nodes.
peers | dma-copy push --mkpath "$file" ":$target/" --to - --parallel 16 --wait 10s --max-duration 10m

srun "$@" "/var/lib/dma-copy/jobs/$SLURM_JOB_ID/$(basename "$file")"
