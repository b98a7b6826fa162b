#!/bin/sh
# Pins the whole development tree (versions and hashes, for every platform and Python that is supported) from
# pyproject.toml into requirements-dev.txt. `sh scripts/lock.sh --upgrade` takes the newest versions.
set -eu
cd "$(dirname "$0")/.."
tool=build/lock
[ -x "$tool/bin/uv" ] || {
    "${PYTHON:-python3}" -m venv "$tool"
    "$tool/bin/python" -m pip install --quiet --disable-pip-version-check 'uv>=0.8,<1'
}
"$tool/bin/uv" pip compile pyproject.toml --extra dev --universal --python-version 3.11 \
    --generate-hashes --no-annotate --no-header --no-emit-index-url --no-emit-find-links \
    --quiet --output-file requirements-dev.txt "$@"
{
    echo "# The development tree, pinned. Written by \`make lock\`; change pyproject.toml instead."
    cat requirements-dev.txt
} >requirements-dev.tmp
mv requirements-dev.tmp requirements-dev.txt
