#!/usr/bin/env bash
# Tests of the pages of `report --as html` in a real browser: drawn, pointed at, sorted,
# printed, in the dark and on a phone. Installs Chromium where it is missing. Screenshots
# lie in target/browser afterwards. PAGEINIT_BROWSER names another browser of its kind.
# Usage: ./scripts/browser-tests.sh [FILTER]
set -euo pipefail
me='browser-tests'
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

browser=${PAGEINIT_BROWSER:-chromium}
if ! have "$browser"; then
    # A subshell: `need` ends the script that it fails in.
    if ! have apt-get || ! (need "$browser" chromium); then
        say "skipped: no browser and no Debian packages"
        exit 0
    fi
fi
export PAGEINIT_BROWSER=$browser
cargo test --locked --test browser -- --ignored --test-threads=1 "$@"
