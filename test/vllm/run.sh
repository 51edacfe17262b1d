#!/usr/bin/env bash
# ./dev test-vllm: the gateway in front of real vLLM workers on the CPU. Not part of ./dev test: needs about 5 GB of disk,
# 6 GB of memory and some ten minutes; --pooling and --images three and five with one worker at a time. KVASIR_VLLM_DIR: where vLLM is or goes (default: the cache folder, outside the tree).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
dir=${KVASIR_VLLM_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/kvasir/vllm}
if ! command -v npm >/dev/null; then
    echo "== npm is missing: installing it"
    apt-get update -q </dev/null >/dev/null
    apt-get install -y -q --no-install-recommends npm </dev/null >/dev/null
fi
echo "== real vLLM in $dir"
test/vllm/install.sh "$dir"
if [ "$#" -eq 0 ]; then
    echo "== the simulator against a real worker: the same requests and events, shapes compared"
    "$dir/venv/bin/python" -B test/vllm/sim_equal.py --dir "$dir"
fi
case "${1:-}" in
    --pooling|--images) script=${1#--}; shift ;;
    *) script=drive ;;
esac
exec "$dir/venv/bin/python" -B "test/vllm/$script.py" --dir "$dir" "$@"
