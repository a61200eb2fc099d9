/* SPDX-License-Identifier: BSD-3-Clause */
/* The exchange on libsaker: see exchange.h. */
#ifndef TEST_INTEROP_EXCHANGE_SAKER_H
#define TEST_INTEROP_EXCHANGE_SAKER_H

#include "exchange.h"
#include "peer.h"

struct ex_saker {
	struct ex_peer ex;
	struct peer p;           /* opened with EX_BUF_LEN bytes */
	struct saker_mw *window; /* NULL: not created yet */
	uint8_t key;             /* of the last bind */
	char status[32];
};

/* Called after peer_open() or peer_setup(). */
void exchange_saker_init(struct ex_saker *b);
/* Connects to `addr`, or listens (NULL) and accepts; runs the exchange; ends the connection.
 * Returns 0, or another value after it has printed what failed. */
int exchange_saker(struct ex_saker *b, const char *addr, uint16_t port, bool quick);

#endif
