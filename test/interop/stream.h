/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endless traffic between two clients, for tests in which one of them comes to a bad end: Writes,
 * Reads and Sends in both directions, every request signalled and counted. Each side opens a window
 * of its memory to the other; the rest must stay as it is.
 */
#ifndef TEST_INTEROP_STREAM_H
#define TEST_INTEROP_STREAM_H

#include "peer.h"

#define STREAM_WINDOW (1u << 20)
#define STREAM_LEN    (3 * STREAM_WINDOW) /* window, source, receives */

struct stream {
	struct peer p;
	struct saker_mr *window;
	uint64_t far_addr;
	uint32_t far_stag;
	uint32_t next_recv;
	uint64_t posted, completed, messages;
	bool broken; /* a request failed, or an event told so */
	bool told;   /* by an event */
};

/* All return 0, or -1 after having said what failed. */
int stream_open(struct stream *s, const char *socket, const char *name);
/* Connects, or listens (`addr` NULL) and accepts; then both learn each other's window. */
int stream_join(struct stream *s, const char *addr, uint16_t port);
/* Takes what has come and posts anew. */
int stream_turn(struct stream *s);
/* After the stream broke: each request must still complete, once, and nothing outside the window
 * may have changed. */
int stream_audit(struct stream *s);

#endif
