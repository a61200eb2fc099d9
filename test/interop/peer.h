/* SPDX-License-Identifier: BSD-3-Clause */
/* What the libsaker programs of the interoperability tests share: attach, one QP with its CQ and
 * buffer, connect or accept. */
#ifndef TEST_INTEROP_PEER_H
#define TEST_INTEROP_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "../../lib/client/saker.h"

#define PEER_WAIT_MS 60000 /* a generous bound: reached only when something is broken */

struct peer {
	struct saker *s;
	struct saker_pd *pd;
	struct saker_mr *mr;
	struct saker_cq *cq;
	struct saker_qp *qp;
	struct saker_listener *listener;
	uint8_t *buf;
	uint32_t buf_len;
	bool disconnected;
	struct saker_conn_param param;
};

/* All return 0, or -1 after having said what failed. The QP speaks iWARP, or Falcon where the
 * environment has PEER_FALCON. */
int peer_open(struct peer *p, const char *socket, const char *name, uint32_t buf_len);
/* The same on an attachment that is there already: p->s. */
int peer_setup(struct peer *p, uint32_t buf_len);
int peer_connect(struct peer *p, const char *addr, uint16_t port);
/* Listens on every address, prints "listening". */
int peer_listen(struct peer *p, uint16_t port);
/* Listens, unless that was done, and takes the first request; `before` runs before the accept. */
int peer_accept(struct peer *p, uint16_t port, int (*before)(void *arg), void *arg);
/* The next event, which must be `want`. */
int peer_expect(struct peer *p, enum saker_event_type want, struct saker_event *ev);
/* The next completion, polled or slept for. */
int peer_wait(struct peer *p, struct rd_wc *wc, bool solicited_only);
/* Until DISCONNECTED has come. */
int peer_wait_end(struct peer *p);
void peer_close(struct peer *p);
int peer_fail(const char *what, int rc);
/* One element in the buffer. */
int peer_recv(struct peer *p, uint64_t wr_id, uint32_t off, uint32_t len);
int peer_post(struct peer *p, uint64_t wr_id, enum rd_opcode op, uint8_t flags, uint32_t off,
	uint32_t len, uint64_t remote, uint32_t rkey, uint32_t inv);

#endif
