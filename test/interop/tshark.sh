#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Two other readers of the frames that saker-perf sends: each operation, several sizes, markers and
# CRC on and off, two MTUs.
#
# mpa_stream.py, which is part of the project, reassembles the streams and follows every FPDU,
# marker, pad, CRC and checksum. It must find no fault, whatever TCP did. tshark follows a stream
# only where every octet came once and in order, and behind a marker only sometimes. Such captures
# it reads themselves. Of others it reads the same FPDUs as mpa_stream.py has written them, in
# order. Either way it must decode exactly the FPDUs that exist, each with a good CRC, down to
# RDMAP, with their opcodes. It also verifies the checksums of each capture itself. So no result
# depends on what a busy machine makes TCP do.
. "$(dirname "$0")/perf.inc"
command -v tshark >/dev/null || skip "tshark is not installed"
. test/interop/tshark.inc
take_memory 256
iters=10

# read_pcap NAME OPTIONS...: runs both readers. Their results are NAME.json and NAME.txt. $part
# names the FPDUs that tshark has read.
read_pcap() {
    local name=$1 given="$work/$1.pcap"
    test/interop/mpa_stream.py "$given" "$work/$name.sorted" >"$work/$name.json" \
        2>"$work/$name.log" || fail "$name: $(cat "$work/$name.json")"
    sums_good "$given" || fail "$name: tshark finds wrong checksums"
    part=opcodes
    if [[ $* == *--markers* ]] || [ "$(own "$name" .again)" != 0 ]; then
        part=sorted_opcodes given=$work/$name.sorted
    fi
    read_mpa "$given" -V >"$work/$name.txt" 2>"$work/$name.log" ||
        fail "$name: tshark cannot read the capture"
}
own() { jq -r "$2" "$work/$1.json"; }      # own NAME FILTER: a result of mpa_stream.py
has() { grep -c -- "$2" "$work/$1.txt"; } # has NAME TEXT: the number of tshark's lines with it
none() { # none NAME TEXT...
    local name=$1
    shift
    for text; do
        [ "$(has "$name" "$text")" = 0 ] || {
            grep -m 1 -B 30 -A 3 -- "$text" "$work/$name.txt"
            fail "$name: tshark reports '$text'"
        }
    done
}
at_least() { # at_least NAME N TEXT
    local n
    n=$(has "$1" "$3")
    [ "$n" -ge "$2" ] || fail "$1: $n times '$3', not $2"
}

# opcodes_agree NAME: compares the opcodes that both readers found. tshark has no name for Immediate
# Data.
opcodes_agree() {
    local name=$1 count code seen
    while read -r count code; do
        [ "$code" = "Immediate Data" ] && code=Unknown
        seen=$(has "$name" "OpCode: $code (0x")
        [ "$seen" = "$count" ] || fail "$name: tshark found $seen of $count FPDUs of opcode '$code'"
    done < <(own "$name" ".$part | to_entries[] | \"\(.value) \(.key)\"")
}

row='%-10s %6s %5s %-8s %-4s %9s %7s %8s %10s %9s\n'
# shellcheck disable=SC2059
printf "$row" op size mtu markers crc segments fpdus markers tshark:fpdus good-crc
# capture OP SIZE MTU [--markers] [--no-crc]
capture() {
    local op=$1 size=$2 mtu=$3 name="$1-$2-$3" fpdus good want code crc=yes markers=no
    shift 3
    [[ $* == *--no-crc* ]] && crc=no
    [[ $* == *--markers* ]] && markers=yes
    name+=$(printf '%s' "$@")
    both "$name" --op "$op" --test lat --size "$size" --mtu "$mtu" --iters $iters --verify \
        --pcap "$work/$name.pcap" "$@"
    correct "$name" $iters
    read_pcap "$name" "$@"

    case $op in
    send) want='["Send"]' ;;
    write) want='["Write"]' ;;
    read) want='["Read Request","Read Response"]' ;;
    write_imm) want='["Write","Immediate Data"]' ;;
    atomic_*) want='["Atomic Request","Atomic Response"]' ;;
    esac
    [ "$(own "$name" ".opcodes as \$o | $want | all(\$o[.] >= $iters)")" = true ] ||
        fail "$name: $(own "$name" .opcodes) for $iters operations"
    [ "$(own "$name" .fpdus)" -gt $((iters * size / mtu)) ] ||
        fail "$name: too few FPDUs for the data"
    [ "$(own "$name" '.crcs == .fpdus')" = "$([ $crc = yes ] && echo true || echo false)" ] ||
        fail "$name: CRCs: $(own "$name" .crcs)"
    [ "$(own "$name" '.markers >= 2')" = "$([ $markers = yes ] && echo true || echo false)" ] ||
        fail "$name: markers: $(own "$name" .markers)"
    [ "$(own "$name" '.unfollowed * 8 < .fpdus')" = true ] ||
        fail "$name: tshark can read too few of the FPDUs"

    none "$name" 'Malformed' 'Bad CRC32' 'Dissector bug'
    at_least "$name" 1 'Request frame header'
    at_least "$name" 1 'Reply frame header'
    fpdus=$(has "$name" '^ *ULPDU length:')
    good=$(has "$name" '(Good CRC32)')
    [ "$fpdus" = "$(own "$name" ".$part | add")" ] ||
        fail "$name: tshark found $fpdus FPDUs of $(own "$name" ".$part")"
    [ "$(has "$name" '^ *RDMAP header')" = "$fpdus" ] || fail "$name: not every FPDU is RDMAP"
    [ "$good" = "$([ $crc = yes ] && echo "$fpdus" || echo 0)" ] ||
        fail "$name: $fpdus FPDUs, $good good CRCs"
    [ $markers = yes ] || none "$name" 'FPDU back pointer'
    opcodes_agree "$name"
    # shellcheck disable=SC2059
    printf "$row" "$op" "$size" "$mtu" $markers $crc "$(own "$name" .segments)" \
        "$(own "$name" .fpdus)" "$(own "$name" .markers)" "$fpdus" "$good"
    rm -f "$work/$name".*
}

for op in send write read; do
    for size in 1 1400 4096 65536; do capture $op $size 1500; done
    capture $op 65536 9000
    capture $op 4096 1500 --markers
    capture $op 4096 1500 --no-crc
    capture $op 1400 1500 --markers --no-crc
    capture $op 65536 9000 --markers
done
for op in atomic_fa atomic_cs; do
    capture $op 8 1500
    capture $op 8 1500 --markers
    capture $op 8 1500 --no-crc
done
for size in 1 1400 65536; do
    capture write_imm $size 1500
    capture write_imm $size 1500 --markers
done
echo "tshark agrees"
