/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Observes the frames that engines send, before a hostile wire receives them: counts Terminates by
 * their contents, and writes a capture. It does not support markers.
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

/* Returns 0, or -1 if the port accepts no callback. Called before the port's engine runs; `w` must
 * outlive the use of the port. */
int watch_port(struct watch *w, uint16_t port);
/* Opens the capture: Ethernet, nanoseconds. Returns 0 or -errno. */
int watch_pcap(struct watch *w, const char *path);

#endif
