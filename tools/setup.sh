#!/bin/sh
# Make .venv and install pgdyno into it: the Python package, its tools for development, the engine.
set -eu
PYTHON=${PYTHON:-python3}

say() { printf 'setup: %s\n' "$1"; }
fail() { printf 'setup: %s\nhint: %s\n' "$1" "$2" >&2; exit 1; }

command -v "$PYTHON" >/dev/null || fail "no $PYTHON" "apt-get install python3"
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
    || fail "$("$PYTHON" --version) is too old" "pgdyno needs Python 3.11 or newer; name one with PYTHON=…"
command -v cargo >/dev/null || fail "no cargo" "apt-get install cargo, or rustup.rs"
command -v cc >/dev/null || fail "no C compiler" "apt-get install gcc libc6-dev"

# Debian keeps the module that fills a virtual environment in a package of its own.
make_venv() { "$PYTHON" -m venv .venv 2>/dev/null || "$PYTHON" -m virtualenv -q .venv 2>/dev/null; }
if ! [ -x .venv/bin/pip ]; then
    rm -rf .venv
    if ! make_venv; then
        rm -rf .venv
        [ "$(id -u)" = 0 ] || fail "$PYTHON cannot make a virtual environment" "apt-get install python3-venv"
        say "installing python3-venv"
        { apt-get update -qq && apt-get install -y -qq python3-venv; } >/dev/null
        make_venv || fail "$PYTHON cannot make a virtual environment" "apt-get install python3-venv"
    fi
fi

say "building the engine and installing the package into .venv (the first time takes minutes)"
log=.venv/setup.log
if ! .venv/bin/pip install --disable-pip-version-check --quiet --editable '.[dev]' >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    fail "the installation failed" "the whole of it is in $log"
fi
say "installed $(.venv/bin/pgdyno-engine --version)"
