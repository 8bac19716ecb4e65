#!/usr/bin/env bash
# A fine-tune on two nodes of eight GPUs, one task a GPU, each under cudiag: sbatch examples/slurm.sh finetune.py [ARGUMENT...]
#SBATCH --job-name=finetune
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=8
#SBATCH --time=04:00:00
set -euo pipefail

# On the file system that all nodes share, so that the login node can read it. A directory a rank: the command keeps the newest 50
# runs of a directory, and a job may have more ranks than that.
job=${CUDIAG_JOB_DIR:-${SLURM_SUBMIT_DIR:?not in a Slurm job}/cudiag/$SLURM_JOB_ID}
export job
# In the job: what is red here would be red in each of its ranks, hours later.
srun --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 cudiag doctor

# cudiag run tells, of a rank that was killed, by which signal and whether it was for memory. Its status is the rank's own.
# The quotes are meant: SLURM_PROCID is each task's own.
# shellcheck disable=SC2016
srun --kill-on-bad-exit=1 bash -c '
    export CUDIAG_DIR=$job/rank-$SLURM_PROCID RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS
    exec cudiag run -- python "$@"' rank "$@" || status=$?

# Who failed first is the cause; the others say that they lost it.
for rank in "$job"/rank-*; do
    [ -d "$rank" ] || continue
    printf '\n== %s\n' "${rank##*/}"
    CUDIAG_DIR=$rank cudiag report || true
done
exit "${status:-0}"
