#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The Debian packages of config/packaging, in a fresh root from the package mirror: lintian has no
# error and no warning, the packages install, the unit is valid and confined, the manual pages, the
# completion and the dissectors are in their places, an example compiles and the demo runs from the
# installed programs, and after removal nothing is left but the user saker. CI_LONG=1: the demo also
# measures. PACKAGES=FOLDER: tests the packages that are there. Takes about two minutes on two quiet
# cores.
. "$(dirname "$0")/common.sh"
[ "$(id -u)" = 0 ] || skip "a fresh root needs root"
# shellcheck disable=SC2086 # a list
install_packages $saker_package_packages || skip "the tools for packages cannot be installed"
root=$work/root out=${PACKAGES:-$work/packages}

leave_root() {
    local m
    # mmdebstrap removes its own mounts when it is told to end.
    [ -z "${pid[root]:-}" ] || { kill "${pid[root]}"; wait "${pid[root]}"; } 2>/dev/null
    for m in dev/shm dev sys proc; do umount "$root/$m" 2>/dev/null; done
    # A mount that stays would be the host's.
    ! grep -q " $root/" /proc/mounts || { echo "still mounted: $root"; trap - EXIT; exit 1; }
    end_all
}
trap leave_root EXIT
inside() {
    chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive "$@"
}
install() { inside apt-get install -y -q --no-install-recommends "$@" >>"$work/apt.log" 2>&1; }

say "a fresh root, beside the build"
mirror=$(sed -n 's/^URIs: *//p; s/^deb \(\[.*\] \)\?\(http[^ ]*debian\/\?\) .*/\2/p' \
    /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null | head -n 1)
start root mmdebstrap --mode=root --variant=minbase --aptopt='Acquire::Languages "none"' \
    --include=systemd bookworm "$root" "${mirror:-http://deb.debian.org/debian}"
if [ -z "${PACKAGES:-}" ]; then
    config/packaging/build.sh "$out" >"$work/build.log" 2>&1 || fail "the packages do not build"
fi
names="libsaker-dev libsaker0 saker saker-tools saker-verbs" # sorted
# shellcheck disable=SC2012 # names without blanks
built=$(ls "$out" | sed -n 's/_.*_amd64\.deb$//p' | grep -v dbgsym | LC_ALL=C sort | xargs)
[ "$built" = "$names" ] || fail "other packages: $(ls "$out")"

say "lintian"
lintian --allow-root --fail-on error,warning "$out"/*.changes >"$work/lintian.log" 2>&1 ||
    fail "lintian has findings"

say "installation"
until_true 900 has_ended root || fail "the root takes too long"
ends root 1 || skip "no root can be made: $(tail -n 1 "$work/root.log")"
mount -t proc proc "$root/proc" && mount -t sysfs -o ro sysfs "$root/sys" &&
    mount -t tmpfs -o mode=755 dev "$root/dev" || fail "mounts"
for device in null zero urandom full random; do cp -a /dev/$device "$root/dev"; done
mkdir "$root/dev/shm" && mount -t tmpfs shm "$root/dev/shm" || fail "mounts"
cp /etc/resolv.conf "$root/etc/"
inside apt-get update -q >"$work/apt.log" 2>&1 || skip "no mirror in the root"
# The packages that the demo and the example need, which a removal must leave as they are.
install jq gcc libc6-dev pkg-config || fail "jq and gcc"
# Without what the package manager keeps, and without /run, which a running system has in memory.
everything() {
    (cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./run \
        -o -path ./var/lib/dpkg -o -path ./var/log -o -path ./var/cache \) -prune -o -print | sort)
}
# shellcheck disable=SC2016 # for dpkg-query
selected() { inside dpkg-query -W -f '${Package}\n' | sort; }
everything >"$work/files.before"
selected >"$work/selected.before"
for name in $names; do
    cp "$out/${name}_"*.deb "$root/root/$name.deb"
done
# shellcheck disable=SC2086,SC2046 # names without blanks
install librte-net-memif23 $(printf '/root/%s.deb ' $names) || fail "the packages do not install"
rm "$root"/root/*.deb

say "the unit, the user, the places"
inside systemd-analyze verify --man=no /usr/lib/systemd/system/saker.service >"$work/unit.log" 2>&1
[ ! -s "$work/unit.log" ] || fail "systemd-analyze verify"
inside systemd-analyze security --offline=true --threshold=30 --no-pager \
    /usr/lib/systemd/system/saker.service >"$work/security.log" 2>&1 || fail "the unit is exposed"
tail -n 1 "$work/security.log"
[ "$(inside stat -c '%a %U %G' /etc/saker/saker.ini)" = "640 root saker" ] ||
    fail "/etc/saker/saker.ini is $(inside stat -c '%a %U %G' /etc/saker/saker.ini)"
# shellcheck disable=SC2016 # for the root's shell
inside sh -c '. /etc/default/saker && saker --in-memory --no-huge -m 64 $EAL_OPTIONS \
    -- --check --config /etc/saker/saker.ini' >"$work/check.log" 2>&1 || fail "the unit's command"
for place in share/bash-completion/completions/{sakerctl,saker-perf,saker-run} \
    share/man/man8/{saker,sakerctl}.8.gz share/man/man5/saker.ini.5.gz \
    share/man/man7/saker-verbs.7.gz share/man/man3/libsaker.3.gz \
    share/man/man1/saker-{perf,sim,run}.1.gz \
    lib/x86_64-linux-gnu/wireshark/plugins/falcon{,_crypto}.lua; do
    [ -s "$root/usr/$place" ] || fail "/usr/$place is missing"
done
# shellcheck disable=SC2016
inside sh -c 'cd /usr/share/doc/libsaker-dev/examples && cc -Wall -Werror write.c -o /tmp/write \
    $(pkg-config --cflags --libs libsaker) && ldd /tmp/write' >"$work/example.log" 2>&1 &&
    grep -q "libsaker.so.0 => /lib" "$work/example.log" || fail "the example does not compile"
rm "$root/tmp/write"

say "the demo"
[ -n "${CI_LONG:-}" ] && figures=() || figures=(--no-figures)
inside /usr/share/doc/saker-tools/examples/demo.sh "${figures[@]}" >"$work/demo.log" 2>&1 ||
    fail "the demo fails"
tail -n 1 "$work/demo.log"

say "removal"
selected | comm -13 "$work/selected.before" - >"$work/added"
# shellcheck disable=SC2046
inside apt-get purge -y -q $(cat "$work/added") \
    >>"$work/apt.log" 2>&1 || fail "the packages are not removed"
everything | comm -13 "$work/files.before" - >"$work/left.log"
grep -v -e '^\./etc/ld.so.cache' -e '^\./tmp$' "$work/left.log" >"$work/rest.log"
[ ! -s "$work/rest.log" ] || fail "files are left"
echo PASS
