#!/bin/sh
# Makes .venv and installs into it what a make target needs.
#
#   scripts/setup.sh runtime   the program and what it runs on
#   scripts/setup.sh dev       the whole development tree, pinned by requirements-dev.txt
#
# Needs nothing but Python >= 3.11 with its venv module; takes the newest that was compiled with optimisations, or else
# the newest. PYTHON=/path/to/python chooses one.
set -eu
cd "$(dirname "$0")/.."
kind=${1:?runtime or dev}
venv=.venv
export PIP_DISABLE_PIP_VERSION_CHECK=1

fail() {
    echo "swecli setup: $*" >&2
    exit 1
}

recent() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

has_venv() {
    "$1" -c 'import ensurepip, venv' >/dev/null 2>&1
}

# Compiled with a profile: by distributions and installers yes, by pyenv only on demand. Our tests take an eighth less
# time with it.
optimised() {
    "$1" -c 'import sys, sysconfig
options = sysconfig.get_config_var("CONFIG_ARGS") or ""
sys.exit(sys.base_prefix != "/usr" and "--enable-optimizations" not in options)' >/dev/null 2>&1
}

# All in PATH, one a line, the newest first.
pythons() {
    for name in python3.14 python3.13 python3.12 python3.11 python3 python; do
        (
            IFS=:
            for folder in $PATH; do
                [ ! -x "${folder:-.}/$name" ] || echo "${folder:-.}/$name"
            done
        )
    done
}

without_venv() {
    fail "${1##*/} has no venv module (on Debian or Ubuntu: apt install python3-venv)."
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        command -v "$PYTHON" >/dev/null 2>&1 || fail "PYTHON=$PYTHON is not there."
        recent "$PYTHON" || fail "PYTHON=$PYTHON is older than Python 3.11."
        has_venv "$PYTHON" || without_venv "$PYTHON"
        echo "$PYTHON"
        return
    fi
    plain= bare= old=
    set -f
    IFS='
'
    for python in $(pythons); do
        if ! recent "$python"; then
            ! "$python" --version >/dev/null 2>&1 || old=$python
        elif ! has_venv "$python"; then
            bare=${bare:-$python}
        elif optimised "$python"; then
            echo "$python"
            return
        else
            plain=${plain:-$python}
        fi
    done
    if [ -n "$plain" ]; then
        echo "$plain"
        return
    fi
    [ -z "$bare" ] || without_venv "$bare"
    [ -z "$old" ] || fail "Python 3.11 or newer is needed; found only $("$old" --version 2>&1)."
    fail "Python 3.11 or newer is needed, and there is no python3 on PATH."
}

# A .venv that no longer works (its Python was removed, the folder was moved, pip is missing) is made anew.
if ! recent "$venv/bin/python" || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    python=$(find_python)
    echo "Making $venv with $("$python" --version 2>&1) ($python) ..."
    "$python" -m venv --clear "$venv" || fail "$python could not make $venv; its message is above."
fi

pip() {
    "$venv/bin/python" -m pip install --quiet --no-input "$@" ||
        fail "the installation failed; pip's message is above. Run the same command again to retry."
}

case $kind in
runtime)
    echo "Installing swecli into $venv ..."
    pip --editable .
    ;;
dev)
    echo "Installing the development tree into $venv ..."
    pip --require-hashes --requirement requirements-dev.txt
    pip --no-deps --no-build-isolation --editable .
    ;;
*)
    fail "unknown kind: $kind"
    ;;
esac
# The stamps let make skip all of this the next time.
touch "$venv/.swecli-$kind"
