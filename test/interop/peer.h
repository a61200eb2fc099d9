/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the libsaker programs of the interoperability tests: attach, one QP with its CQ and
 * buffer, connect or accept. */
#ifndef TEST_INTEROP_PEER_H
#define TEST_INTEROP_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include <saker/saker.h>

#define PEER_WAIT_MS 60000 /* generous; reached only when something is broken */

struct peer {
	struct saker *s;
	struct saker_pd *pd;
	struct saker_mr *mr;
	struct saker_cq *cq;
	struct saker_qp *qp;
	struct saker_listener *listener;
	uint8_t *buf;
	struct saker_conn_param param;
};

/* All functions return 0, or -1 after they have printed what failed. The QP uses iWARP, or Falcon
 * if PEER_FALCON is set in the environment. */
int peer_open(struct peer *p, const char *socket, const char *name, uint32_t buf_len);
/* Does the same on an existing attachment, p->s. */
int peer_setup(struct peer *p, uint32_t buf_len);
int peer_connect(struct peer *p, const char *addr, uint16_t port);
/* Listens on every address and prints "listening". */
int peer_listen(struct peer *p, uint16_t port);
/* Listens, unless that was done before, and accepts the first request; calls `before` before the
 * accept. */
int peer_accept(struct peer *p, uint16_t port, int (*before)(void *arg), void *arg);
/* Takes the next event, which must be `want`. */
int peer_expect(struct peer *p, enum saker_event_type want, struct saker_event *ev);
/* Takes the next completion: polls, or sleeps for it. */
int peer_wait(struct peer *p, struct rd_wc *wc, bool solicited_only);
/* Waits until DISCONNECTED arrives. */
int peer_wait_end(struct peer *p);
void peer_close(struct peer *p);
int peer_fail(const char *what, int rc);
/* peer_recv() and peer_post() post a request with one element in the buffer. */
int peer_recv(struct peer *p, uint64_t wr_id, uint32_t off, uint32_t len);
int peer_post(struct peer *p, uint64_t wr_id, enum rd_opcode op, uint8_t flags, uint32_t off,
	uint32_t len, uint64_t remote, uint32_t rkey, uint32_t inv);

#endif
