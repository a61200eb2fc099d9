/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looks at what engines send, before a hostile wire gets it: counts Terminates by what they say,
 * and keeps a capture. No markers.
 */
#ifndef TEST_INTEROP_WATCH_H
#define TEST_INTEROP_WATCH_H

#include <stdint.h>
#include <stdio.h>

struct watch {
	uint8_t layer, etype, code; /* the Terminate that is expected */
	uint64_t as_expected, others;
	FILE *pcap; /* NULL: none */
};

/* 0, or -1 when the port takes no callback. Before the port's engine runs; `w` outlives the port's
 * use. */
int watch_port(struct watch *w, uint16_t port);
/* Ethernet, nanoseconds. 0 or -errno. */
int watch_pcap(struct watch *w, const char *path);

#endif
