#!/usr/bin/env bash
# A fine-tune on all GPUs of this machine, under cudiag: examples/torchrun.sh finetune.py [ARGUMENT...]
# For several nodes, start it on each with the rendezvous's words in front: examples/torchrun.sh --nnodes=2 --rdzv-backend=c10d
# --rdzv-endpoint=HOST:29500 finetune.py
set -euo pipefail

# Shared by the nodes; each node's torchrun and its ranks are one run there, named so that two nodes never meet.
export CUDIAG_DIR=${CUDIAG_DIR:-$PWD/cudiag-runs}
cudiag doctor

# torchrun is the root of the run, so it is told once, at its end; `cudiag report` has each rank's finding with its rank.
LD_PRELOAD=$(cudiag lib) torchrun --nproc-per-node="${GPUS:-gpu}" "$@" || status=$?
[ "${status:-0}" = 0 ] || cudiag report || true
exit "${status:-0}"
