#!/usr/bin/env bash
# Set up a clone for work: .venv with the locked packages, this package in it, and a Java for Spark.
#
# Idempotent, and instant once done: .venv/.stamp holds a digest of all that decides what gets installed.
# Needs Python 3.11+ only. What is missing from the system is installed with apt-get where that is allowed
# (root, or sudo without a password); otherwise the script says exactly what to install, and stops.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '[setup] %s\n' "$*" >&2; }
fail() { say "$1"; shift; for line in "$@"; do printf '        %s\n' "$line" >&2; done; exit 1; }

# --- system packages ------------------------------------------------------------------------------------

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

may_install() {
    command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }
}

# Install the first of the named packages that this release of Debian has.
apt_install() {
    may_install || return 1
    if [ -z "${apt_updated:-}" ]; then
        as_root apt-get update -qq >/dev/null 2>&1 || true
        apt_updated=1
    fi
    local package
    for package in "$@"; do
        apt-cache show "$package" >/dev/null 2>&1 || continue
        say "installing $package"
        # slim images lack the folder, and Java's packages then fail to configure
        as_root mkdir -p /usr/share/man/man1
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" \
            >/dev/null 2>&1 && return 0
    done
    return 1
}

# --- Python ---------------------------------------------------------------------------------------------

find_python() {
    local candidate
    for candidate in "${PYTHON:-}" python3 python3.13 python3.12 python3.11 python; do
        if [ -n "$candidate" ] && command -v "$candidate" >/dev/null 2>&1 \
            && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            command -v "$candidate"
            return 0
        fi
    done
    return 1
}

# Debian keeps ensurepip in a package of its own.
ensure_venv_module() {
    local python=$1 version
    "$python" -c 'import venv, ensurepip' 2>/dev/null && return 0
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    apt_install "python$version-venv" python3-venv || true
    "$python" -c 'import venv, ensurepip' 2>/dev/null \
        || fail "$python cannot make virtual environments. Install its venv module:" "apt-get install python$version-venv"
}

digest() {
    { cat requirements.lock pyproject.toml scripts/setup.sh; pwd; .venv/bin/python -VV; } 2>/dev/null | sha256sum | cut -d ' ' -f 1
}

is_installed() { [ -f .venv/.stamp ] && [ "$(cat .venv/.stamp)" = "$(digest)" ]; }

make_environment() {
    local python
    # a moved clone or a removed Python leaves an environment that does not start
    if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
        python=$(find_python) || fail "No Python 3.11 or later found. Install one, or name one:" \
            "apt-get install python3 python3-venv" "PYTHON=/path/to/python3.11 make setup"
        ensure_venv_module "$python"
        say "making .venv with $("$python" -V) ($python)"
        rm -rf .venv
        "$python" -m venv .venv
    fi
}

# Without byte code: Python makes it for the modules that are used, which are few.
pip_install() { .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile "$@"; }

install_packages() {
    say "installing $(grep -c '==' requirements.lock) locked packages into .venv (a few minutes the first time)"
    # first the tools that build packages: Debian's own pip is too old to build without warnings
    # shellcheck disable=SC2046
    pip_install $(grep -E '^(pip|setuptools)==' requirements.lock)
    pip_install -r requirements.lock
    say "installing trendloom itself"
    pip_install --no-deps --no-build-isolation --editable .
    digest > .venv/.stamp
    fresh=1
}

# --- Java -----------------------------------------------------------------------------------------------

java_version() { # 17.0.15 -> 17, 1.8.0_402 -> 1
    "$1" -version 2>&1 | sed -nE 's/.* version "([0-9]+).*/\1/p' | head -n 1
}

# The home of the first Java 17+: JAVA_HOME, PATH, then where Debian puts them.
find_java_home() {
    local java version
    for java in "${JAVA_HOME:-/nonexistent}/bin/java" "$(command -v java || true)" /usr/lib/jvm/*/bin/java; do
        [ -n "$java" ] && [ -x "$java" ] || continue
        version=$(java_version "$java")
        if [ "${version:-0}" -ge 17 ]; then
            dirname "$(dirname "$(readlink -f "$java")")"
            return 0
        fi
    done
    return 1
}

install_java() {
    find_java_home >/dev/null && return 0
    say "Spark needs Java 17 or later, and there is none"
    apt_install openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless || true
}

# Tests of the dashboard drive a browser; without one they are skipped, and say so.
install_browser() {
    command -v chromium >/dev/null || apt_install chromium || say "no chromium: tests of the dashboard will be skipped"
}

ensure_java() {
    java_home=$(find_java_home) || fail "No Java 17 or later found. Install one, or set JAVA_HOME:" \
        "apt-get install openjdk-17-jre-headless" "JAVA_HOME=/path/to/java17 make setup"
}

write_environment() {
    {
        printf 'export JAVA_HOME=%q\n' "$java_home"
        printf 'export VIRTUAL_ENV=%q\n' "$PWD/.venv"
        # shellcheck disable=SC2016
        printf 'export PATH="$VIRTUAL_ENV/bin:$JAVA_HOME/bin:$PATH"\n'
        # hundreds of processes of the tests load the same modules: each is compiled once, whatever an image says
        printf 'unset PYTHONHOME PYTHONDONTWRITEBYTECODE\n'
    } > .venv/env.sh
}

# What the usual kinds of queries need is compiled while you read on; a process that needs it sooner compiles it first. Builds
# that are thrown away (CI=true) do without.
warm_up() {
    [ -n "$fresh" ] && [ -z "${CI:-}" ] || return 0
    say "compiling kernels in the background (trendloom warm)"
    nohup nice -n 19 .venv/bin/trendloom warm --processes 1 --quiet >/dev/null 2>&1 </dev/null &
}

fresh=
if is_installed; then
    install_java
else
    make_environment
    { install_java && install_browser; } & # while pip waits for its packages
    trap 'wait' EXIT
    install_packages
    wait
    trap - EXIT
fi
ensure_java
write_environment
warm_up
[ -z "$fresh" ] || say "ready: $(.venv/bin/python -V), Java $(java_version "$java_home/bin/java")"
