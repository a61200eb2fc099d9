#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# rdma-core's own tests, as Debian's rdma-core and python3-pyverbs have them, on both devices of a
# saker. rdma_tests.py has the tests that cannot pass and the features whose tests are skipped, each
# with its reason; another failure, another skipped test, and a test that passes against the
# expectation fail this script.
#
#   test/interop/pyverbs.sh [-v]      -v prints every test that did not pass
. "$(dirname "$0")/common.sh"
install_packages python3-pyverbs rdma-core jq ||
    skip "Debian's rdma-core and python3-pyverbs cannot be installed"
[ -x "$build/app/saker-run" ] ||
    skip "saker-run is not built: no headers of libibverbs and librdmacm"
take_memory 500
mkdir "$work/tests"
for f in /usr/share/doc/rdma-core/tests/*.py*; do
    case $f in
    *.gz) gzip -dc "$f" >"$work/tests/$(basename "$f" .gz)" ;;
    *) cp "$f" "$work/tests" ;;
    esac
done

falcon_section 7 >"$work/falcon.ini"
saker a 0 net_ring0 -- --config "$work/falcon.ini" --address 0=10.5.0.1/24 --idle sleep
for device in saker0:iwarp sakerf0:falcon; do
    # Debian's Python, which has the module.
    start "$device" nice -n 19 timeout -k 5 300 "$build/app/saker-run" --poll yield \
        --socket "$work/a.sock" -t "${device#*:}" /usr/bin/python3 test/interop/rdma_tests.py \
        "$work" "${device%:*}" 10.5.0.1
    ends "$device" 320
    status=$?
    [ "${1-}" != -v ] || cat "$work/$device.log"
    grep "^bad" "$work/$device.log"
    [ $status = 0 ] || fail "$device: the tests above are bad"
    sed -n 's/^skipped .*: //p' "$work/$device.log" | sort | uniq -c | sort -rn
    tail -n 1 "$work/$device.log"
    clean a
done
echo PASS
