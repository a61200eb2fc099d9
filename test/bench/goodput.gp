# SPDX-License-Identifier: BSD-3-Clause
# The picture of goodput.sh: data, picture and link are set by it.
set terminal png size 720,440
set output picture
set title "Goodput under random loss: ".link
set xlabel "loss, percent"
set ylabel "percent of the goodput without loss"
set yrange [0:105]
set xrange [0:5]
set grid
set key outside below
pick(t, n) = "< awk '$1 == \"".t."\" && $2 == ".n."' ".data
plot 100 - x with lines dt 2 lc "gray" title "ceiling", \
     pick("falcon", "8") using 3:5 with linespoints lw 2 title "Falcon, 8 connections", \
     pick("falcon", "1") using 3:5 with linespoints lw 2 title "Falcon, 1 connection", \
     pick("iwarp", "8") using 3:5 with linespoints lw 2 title "iWARP, 8 connections", \
     pick("iwarp", "1") using 3:5 with linespoints lw 2 title "iWARP, 1 connection"
