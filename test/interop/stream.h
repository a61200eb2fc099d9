/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endless traffic between two clients, for tests in which one of them fails: Writes, Reads and
 * Sends in both directions, every request signaled and counted. Each side grants the other access
 * to a window of its memory; the rest must not change.
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
	bool broken; /* a request failed, or an event reported the end */
	bool told;   /* an event reported the end */
};

/* All functions return 0, or -1 after they have printed what failed. */
int stream_open(struct stream *s, const char *socket, const char *name);
/* Connects, or listens (`addr` NULL) and accepts; then both sides exchange their windows. */
int stream_join(struct stream *s, const char *addr, uint16_t port);
/* Takes completions and posts new requests. */
int stream_turn(struct stream *s);
/* Called after the stream broke: checks that each request completes, once, and that nothing outside
 * the window has changed. */
int stream_audit(struct stream *s);

#endif
