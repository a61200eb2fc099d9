#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# sockets_symbols.sh LIBRARY MANUAL: checks that LIBRARY replaces each function of the C library
# that can be called with a socket. A function that it does not replace stands below, with the
# reason or because MANUAL names it. The names are found by a pattern in the C library itself, so
# that one that a later version adds is found, too.
set -u
library=$1 manual=$2
libc=$(ldd "$library" | awk '$1 == "libc.so.6" { print $3 }')
if [ ! -r "$libc" ]; then
    echo "1..0 # SKIP the C library was not found"
    exit 0
fi

# functions LIBRARY: prints the functions to which programs are linked today.
functions() {
    readelf --dyn-syms --wide "$1" |
        awk '($4 == "FUNC" || $4 == "IFUNC") && $5 != "LOCAL" && $7 != "UND" &&
            $8 !~ /PRIVATE|[^@]@[^@]/ { sub("@.*", "", $8); print $8 }' |
        sort -u
}

# The names of functions that take a descriptor: of sockets, and of all that reads and writes.
verbs='(p?(read|write)v?(64)?(v2|64v2)?|(send|recv)(to|from|msg|mmsg|file|file64)?|v?dprintf'
verbs+='|(vm)?splice|tee|copy_file_range|fdopen|dup[23]?|close(from|_range)?|accept4?|connect|bind'
verbs+='|listen|shutdown|[gs]etsockopt|get(peer|sock)name|ioctl|fcntl(64)?|sockatmark|isfdtype'
verbs+='|aio_(read|write)(64)?|lio_listio(64)?|bindresvport|.*_symbols_fd|readahead'
verbs+='|p?(select|poll))'

# The kernel does the same with the descriptor of the library as with that of a TCP socket.
same='pread pread64 preadv preadv64 pwrite pwrite64 pwritev pwritev64 __pread64 __pwrite64
__pread_chk __pread64_chk aio_read aio_read64 aio_write aio_write64 lio_listio lio_listio64
tee vmsplice copy_file_range readahead isfdtype poll ppoll select pselect __poll __select
__poll_chk __ppoll_chk'
# MANUAL says that these do not reach the library.
bypass='backtrace_symbols_fd bindresvport'

ours=$(functions "$library") missing=() known=0
while read -r f; do
    known=$((known + 1))
    grep -qx "$f" <<<"$ours" && continue
    grep -qw -- "$f" <<<"$same" && continue
    grep -qw -- "${f#__}" <<<"$bypass" && grep -q "^\.BR ${f#__} " "$manual" && continue
    missing+=("$f")
done < <(functions "$libc" | grep -Ex "(_IO_|__)?$verbs(_chk)?")

echo "1..1"
if [ ${#missing[@]} = 0 ] && [ $known -ge 60 ]; then
    echo "ok 1 - $known functions of the C library"
else
    echo "not ok 1 - of $known functions, the library lacks: ${missing[*]}"
fi
