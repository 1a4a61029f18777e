# shellcheck shell=bash
# What the scripts share; sourced, not run. Each script sets `me`, its own name.

say() { echo "${me:?}: $*" >&2; }
die() { say "$@"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif have sudo; then
        sudo "$@"
    else
        die "this needs root; run as root: $*"
    fi
}

# need PROGRAM PACKAGE...: installs the Debian packages unless the program is there.
need() {
    local program=$1
    shift
    have "$program" && return 0
    have apt-get || die "$program is missing; install it (Debian: $*)"
    say "installing $*"
    local log
    log=$(mktemp)
    if ! { as_root apt-get update -q &&
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
            --no-install-recommends "$@"; } >"$log" 2>&1; then
        tail -n 5 "$log" >&2
        rm -f "$log"
        die "$program is missing and installing $* failed"
    fi
    rm -f "$log"
    have "$program" || die "$program is missing although $* was installed"
}

# debian_mirror NAME: the address from which this system takes `debian` or
# `debian-security`; nothing where it takes none.
debian_mirror() {
    # shellcheck disable=SC2016 # apt-get fills these in
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        grep -m1 -E "/$1/?\$"
}

# private_apt FOLDER ARCHITECTURE SUITE...: package lists of other Debian suites or
# another architecture in a folder of their own; the system's lists stay as they are.
# Afterwards `APT_CONFIG=FOLDER/apt.conf apt-get download PACKAGE` works.
private_apt() {
    local folder=$1 arch=$2 suite mirror keyring
    shift 2
    keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    have apt-get && [ -r "$keyring" ] || return 1
    mkdir -p "$folder"/{lists/partial,cache/archives/partial,preferences.d}
    : >"$folder/status"
    : >"$folder/sources.list"
    for suite in "$@"; do
        case $suite in *-security) mirror=debian-security ;; *) mirror=debian ;; esac
        mirror=$(debian_mirror "$mirror") || return 1
        echo "deb [signed-by=$keyring] $mirror $suite main" >>"$folder/sources.list"
    done
    cat >"$folder/apt.conf" <<CONF
APT::Architecture "$arch";
APT::Architectures { "$arch"; };
APT::Sandbox::User "root";
Acquire::Languages "none";
Dir::State "$folder";
Dir::State::lists "$folder/lists";
Dir::State::status "$folder/status";
Dir::Cache "$folder/cache";
Dir::Etc::sourcelist "$folder/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "$folder/preferences.d";
CONF
    APT_CONFIG="$folder/apt.conf" apt-get update -q >"$folder/update.log" 2>&1 &&
        ! grep -q '^[EW]:' "$folder/update.log"
}
