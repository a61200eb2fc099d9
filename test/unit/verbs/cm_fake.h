/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A saker and a libibverbs side that exist in name only, for tests of the librdmacm side: they note
 * what was asked of them, and a test says what the engine answers.
 */
#ifndef TEST_CM_FAKE_H
#define TEST_CM_FAKE_H

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "../../../drivers/verbs/verbs_priv.h"

struct fake {
	/* What the saker was asked last, and how often. */
	struct saker_conn_param param;
	uint8_t private_data[SHM_PRIVATE_MAX];
	struct sk_addr local, remote;
	uint16_t port;
	uint32_t backlog, request;
	bool any_local, abortive;
	unsigned connects, accepts, rejects, disconnects, listens, unlistens, ud_resolves;
	/* What it answers: 0 or -errno. */
	int answer;
	/* The first so many calls of saker_listen() give -EADDRINUSE. */
	unsigned ports_in_use;
	/* Called at the end of saker_connect() and saker_accept(), as if the engine were that fast;
	 * NULL: nothing. */
	void (*at_once)(struct saker_qp *qp);
	/* Objects of verbs that exist. */
	int qps, cqs, channels, srqs, pds;
	bool no_falcon;
};
extern struct fake fake;

/* The two devices' addresses: 192.0.2.1, 198.51.100.1, 2001:db8::1, fe80::1, fe80::2. */
void fake_reset(void);
/* The engine's event `ev` about a QP, or about the last listener. */
void fake_event(const struct saker_event *ev);
void fake_qp_event(struct ibv_qp *qp, enum saker_event_type type, int status);
/* A peer asks: which transport; from 192.0.2.9 port 4444. */
void fake_request(enum shm_transport transport, uint32_t request);
/* Takes the next event of a channel that has one, checks its type, and gives it back. */
struct rdma_cm_event *fake_next(struct rdma_event_channel *ch, enum rdma_cm_event_type type);
/* The same, acknowledged. */
void fake_expect(struct rdma_event_channel *ch, enum rdma_cm_event_type type, int status);
bool fake_readable(struct rdma_event_channel *ch);
/* An IPv4 or IPv6 address with a port, in one of four places that are used in turn. */
struct sockaddr *fake_addr(const char *text, uint16_t port);
/* A channel and an id at ROUTE_RESOLVED towards 192.0.2.9 port 7471, with a QP. */
struct rdma_cm_id *fake_active(struct rdma_event_channel **ch);
/* A channel and an id that listens at `text` port 7471. */
struct rdma_cm_id *fake_passive(struct rdma_event_channel **ch, const char *text);
void fake_destroy(struct rdma_cm_id *id, struct rdma_event_channel *ch);

static inline bool
fake_is_falcon(struct ibv_context *c)
{
	return vb_kind_transport(vb_kind_of(c)) == SHM_FALCON;
}

#endif
