# SPDX-License-Identifier: BSD-3-Clause
# The pictures of report.sh, which sets folder.
set terminal png size 720,440
set grid
set logscale xy
set key outside below
file(name) = folder."/".name.".dat"

set output folder."/latency.png"
set title "64-byte Writes: share of messages that take longer"
set xlabel "ns, one way"
set ylabel "share"
set format y "%g"
plot file("latency-iwarp") with steps lw 2 lc 1 title "iWARP", \
     file("latency-iwarp-floor") with steps dt 2 lc 1 title "iWARP's floor", \
     file("latency-falcon") with steps lw 2 lc 2 title "Falcon", \
     file("latency-falcon-floor") with steps dt 2 lc 2 title "Falcon's floor"

set logscale x 2
set xrange [2:1048576]
set xtics (2, 8, 32, 128, 512, "2 Ki" 2048, "8 Ki" 8192, "32 Ki" 32768, "128 Ki" 131072, \
    "1 Mi" 1048576)
set xlabel "bytes of a Write, MTU 9000"

set output folder."/bandwidth.png"
set title "Bandwidth"
set ylabel "Gb/s"
plot file("size-iwarp") using 1:2 with linespoints lw 2 lc 1 title "iWARP", \
     file("size-iwarp") using 1:4 with lines dt 2 lc 1 title "iWARP's floor", \
     file("size-falcon") using 1:2 with linespoints lw 2 lc 2 title "Falcon", \
     file("size-falcon") using 1:4 with lines dt 2 lc 2 title "Falcon's floor"

set output folder."/rate.png"
set title "Rate"
set ylabel "million messages per second"
plot file("size-iwarp") using 1:3 with linespoints lw 2 lc 1 title "iWARP", \
     file("size-iwarp") using 1:5 with lines dt 2 lc 1 title "iWARP's floor", \
     file("size-falcon") using 1:3 with linespoints lw 2 lc 2 title "Falcon", \
     file("size-falcon") using 1:5 with lines dt 2 lc 2 title "Falcon's floor"
