#!/bin/sh
# Install what the tests of speed `pg` need beyond Python, where this can be done: as root on Debian.
# What is missing afterwards makes its tests say so; nothing here fails.
set -u

missing=""
command -v chromium >/dev/null || missing="$missing chromium"
command -v chromedriver >/dev/null || missing="$missing chromium-driver"
ls /usr/lib/postgresql/*/bin/pgbench >/dev/null 2>&1 || missing="$missing postgresql"
PATH=$PATH:/usr/sbin:/sbin
command -v pgpool >/dev/null || missing="$missing pgpool2"
command -v pgbouncer >/dev/null || missing="$missing pgbouncer"
command -v haproxy >/dev/null || missing="$missing haproxy"
command -v mkfs.xfs >/dev/null || missing="$missing xfsprogs"
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    printf 'test-needs: not installed:%s\nhint: apt-get install%s\n' "$missing" "$missing" >&2
    exit 0
fi
case "$missing" in
*postgresql*)
    # Only the programs are wanted, not Debian's own running server.
    if ! [ -e /etc/postgresql-common/createcluster.conf ]; then
        mkdir -p /etc/postgresql-common
        echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
    fi
    ;;
esac
# Nor are the services of the others: nothing is started while they are installed.
policy=/usr/sbin/policy-rc.d
if ! [ -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    trap 'rm -f "$policy"' EXIT
fi
printf 'test-needs: installing%s\n' "$missing"
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
{ apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing; } >/dev/null \
    || printf 'test-needs: could not install%s; their tests will say so\n' "$missing" >&2
