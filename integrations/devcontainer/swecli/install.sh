#!/bin/sh
# Installs swecli for every user of a dev container, in an environment of its own. Run as root by the container's tools,
# with the options of devcontainer-feature.json as variables.
set -eu
PACKAGE=${PACKAGE:-swecli}
PLACE=/usr/local/share/swecli
export PIP_DISABLE_PIP_VERSION_CHECK=1

python=
for each in python3 python3.14 python3.13 python3.12 python3.11; do
    if command -v "$each" >/dev/null && "$each" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$each
        break
    fi
done
if [ -z "$python" ]; then
    echo "swecli needs Python 3.11 or newer with its venv module: add ghcr.io/devcontainers/features/python to the features." >&2
    exit 1
fi

"$python" -m venv "$PLACE"
"$PLACE/bin/python" -m pip install --quiet --no-cache-dir "$PACKAGE"
ln -sf "$PLACE/bin/swecli" /usr/local/bin/swecli
for each in man/man1/swecli.1 bash-completion/completions/swecli zsh/site-functions/_swecli fish/vendor_completions.d/swecli.fish; do
    mkdir -p "/usr/local/share/${each%/*}"
    ln -sf "$PLACE/share/$each" "/usr/local/share/$each"
done
swecli --version
