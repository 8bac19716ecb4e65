#!/usr/bin/env bash
# Run, read, change the line, run again: what fused=True does to an optimizer's step. Needs a GPU and torch.
set -euo pipefail
cd "$(dirname "$0")"
python=${PYTHON:-python3}
"$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null ||
    { echo "story.sh: this needs a GPU and a torch that sees it (PYTHON=…)" >&2; exit 3; }
export CUDIAG_PROFILE=optimizer
cudiag bench adam
LD_PRELOAD=$(cudiag lib) "$python" finetune.py
changed=$(mktemp --suffix=.py)
trap 'rm -f "$changed"' EXIT
sed 's/lr=1e-4)/lr=1e-4, fused=True)/' finetune.py >"$changed"
diff finetune.py "$changed" || true
LD_PRELOAD=$(cudiag lib) "$python" "$changed"
