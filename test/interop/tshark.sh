#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A second reader: captures of saker-perf as tshark reads them. Each operation, several sizes, markers and CRC on and off, two MTUs. No packet may be
# malformed, no CRC of MPA and no checksum of TCP or IP wrong; every FPDU that tshark finds must have been decoded down to RDMAP, with the opcodes
# that the operation is made of. A capture in which tshark finds nothing is a failure.
. "$(dirname "$0")/perf.inc"
command -v tshark >/dev/null || skip "no tshark here"
take_memory 256
iters=10

# read_pcap NAME: everything that tshark knows about it. Payload is noise, which some dissectors of upper layers would take for theirs.
# Nor are segments that were sent again read again: on a busy machine there are some, and with markers this reader loses its place behind them.
read_pcap() {
    tshark -r "$work/$1.pcap" -w "$work/$1.once" -Y "!(tcp.analysis.retransmission || tcp.analysis.fast_retransmission \
        || tcp.analysis.spurious_retransmission || tcp.analysis.out_of_order)" 2>"$work/$1.log" || fail "$1: tshark gives up"
    tshark -r "$work/$1.once" -V --disable-protocol nvme-tcp --disable-heuristic smb_direct_iwarp --disable-heuristic rpcrdma_iwarp \
        -o tcp.check_checksum:TRUE -o ip.check_checksum:TRUE >"$work/$1.txt" 2>"$work/$1.log" || fail "$1: tshark gives up"
}
has() { grep -c -- "$2" "$work/$1.txt"; } # has NAME TEXT: how many lines
none() { # none NAME TEXT...
    local name=$1
    shift
    for text; do
        [ "$(has "$name" "$text")" = 0 ] || { grep -m 1 -B 30 -A 3 -- "$text" "$work/$name.txt"; fail "$name: tshark says '$text'"; }
    done
}
at_least() { # at_least NAME N TEXT
    local n
    n=$(has "$1" "$3")
    [ "$n" -ge "$2" ] || fail "$1: $n times '$3', not $2"
}

row='%-9s %8s %5s %-8s %-4s %8s %7s %9s %7s\n'
# shellcheck disable=SC2059
printf "$row" op size mtu markers crc segments fpdus good-crc opcodes
# capture OP SIZE MTU [--markers] [--no-crc]
capture() {
    local op=$1 size=$2 mtu=$3 name="$1-$2-$3" fpdus good segments code codes=0 want least=$iters
    shift 3
    name+=$(printf '%s' "$@")
    both "$name" --op "$op" --test lat --size "$size" --mtu "$mtu" --iters $iters --verify --pcap "$work/$name.pcap" "$@"
    correct "$name" $iters
    read_pcap "$name"
    none "$name" 'Malformed' 'Bad CRC32' '\[Checksum Status: Bad\]' 'Header checksum status: Bad' 'Dissector bug'
    at_least "$name" 1 'Request frame header'
    at_least "$name" 1 'Reply frame header'
    segments=$(has "$name" '^Transmission Control Protocol')
    [ "$(has "$name" '^ *\[Checksum Status: Good\]')" -ge "$segments" ] || fail "$name: not every checksum was looked at"
    fpdus=$(has "$name" '^ *ULPDU length:')
    good=$(has "$name" '(Good CRC32)')
    [ "$fpdus" -ge $((3 * iters)) ] || fail "$name: tshark found $fpdus FPDUs"
    case " $* " in
    *" --no-crc "*) [ "$good" = 0 ] || fail "$name: CRCs although off" ;;
    *) [ "$good" = "$fpdus" ] || fail "$name: $fpdus FPDUs, $good good CRCs" ;;
    esac
    [ "$(has "$name" '^ *RDMAP header')" = "$fpdus" ] || fail "$name: not every FPDU is RDMAP"
    case " $* " in
    *" --markers "*) [ "$size" -lt 2048 ] || at_least "$name" $iters 'FPDU back pointer' ;;
    *) none "$name" 'FPDU back pointer' ;;
    esac
    case $op in
    send) want='Send' ;;
    write) want='Write' ;;
    read) want='Read_Request Read_Response' ;;
    write_imm) want='Write Unknown' ;; # Immediate Data, which this reader does not know
    atomic_*) want='Atomic_Request Atomic_Response' ;;
    esac
    # Behind some markers this reader loses its place until the next segment.
    local whole=$((iters * size / mtu)) # segments that the data alone fills
    [[ $* == *--markers* ]] && least=1 whole=0
    for code in $want; do
        at_least "$name" $least "OpCode: ${code/_/ } (0x"
        codes=$((codes + $(has "$name" "OpCode: ${code/_/ } (0x")))
    done
    [ $codes -gt $whole ] || fail "$name: $codes FPDUs for $iters operations"
    # shellcheck disable=SC2059
    printf "$row" "$op" "$size" "$mtu" "$([[ $* == *markers* ]] && echo yes || echo no)" "$([[ $* == *no-crc* ]] && echo no || echo yes)" \
        "$segments" "$fpdus" "$good" "$codes"
    rm -f "$work/$name.pcap" "$work/$name.once" "$work/$name.txt"
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
# Without markers: beside them this reader takes two FPDUs in a segment, a Write and its Immediate Data, for one.
for size in 1 1400 65536; do capture write_imm $size 1500; done
echo "tshark agrees"
