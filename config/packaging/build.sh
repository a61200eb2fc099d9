#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# build.sh FOLDER: builds the Debian packages saker, libsaker0, libsaker-dev, saker-verbs and
# saker-tools from this tree, and puts them into FOLDER. The tree is copied first and stays as it
# is. Needs debhelper and the packages that debian/control names. Prints the packages.
set -eu
cd "$(dirname "$0")/../.."
[ $# = 1 ] || { echo "usage: build.sh FOLDER"; exit 2; }
mkdir -p "$1"
out=$(realpath "$1")
work=$(mktemp -d /tmp/saker-package.XXXXXX)
trap 'rm -rf "$work"' EXIT

# The files of a checkout, or all but the builds of a released archive.
if git rev-parse --git-dir >/dev/null 2>&1; then
    git ls-files -co --exclude-standard -z >"$work/files"
else
    find . -path './build*' -prune -o -type f -print0 >"$work/files"
fi
mkdir "$work/saker"
tar -c --null -T "$work/files" --ignore-failed-read 2>/dev/null | tar -x -C "$work/saker"
cp -r config/packaging/debian "$work/saker"
cd "$work/saker"
dpkg-buildpackage -b -us -uc >"$work/log" 2>&1 || {
    tail -n 40 "$work/log"
    exit 1
}
cp "$work"/*.deb "$work"/*.changes "$work"/*.buildinfo "$out"
ls "$out"/*.deb
