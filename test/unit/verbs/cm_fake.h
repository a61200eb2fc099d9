/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fake libsaker and a fake libibverbs side, for tests of the librdmacm side. They record the
 * calls that they receive, and a test sets the results and raises the engine's events.
 */
#ifndef TEST_CM_FAKE_H
#define TEST_CM_FAKE_H

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <unistd.h>

#include "../../../drivers/verbs/verbs_priv.h"

struct fake {
	/* The arguments of the last calls of libsaker, and the numbers of calls. */
	struct saker_conn_param param;
	bool modes_wrong; /* vb_modes() fails */
	uint8_t private_data[SAKER_PRIVATE_MAX];
	struct sk_addr local, remote;
	uint16_t port;
	uint32_t backlog, request;
	bool any_local, v4_local, abortive;
	unsigned v6only;                      /* calls of saker_listen_v6only() */
	struct saker_conn_param listen_param; /* of the last listener but for those of datagrams */
	unsigned connects, accepts, rejects, disconnects, listens, unlistens, ud_resolves;
	/* The result of the functions of libsaker: 0 or -errno. */
	int answer;
	/* The number of next calls of saker_listen() that return -EADDRINUSE. */
	unsigned ports_in_use;
	/* The number of next calls of saker_listen() during which the saker ends. */
	unsigned listens_end;
	/* Called at the end of saker_connect() and saker_accept(), as if the engine answered at
	 * once. May be NULL. */
	void (*at_once)(struct saker_qp *qp);
	/* The numbers of objects of verbs that exist. */
	int qps, cqs, channels, srqs, pds, contexts;
	/* The number of next looks for a saker that find none, and of looks so far. */
	unsigned looks_fail, looks;
	/* Calls of vb_saker_device() so far, and how many of them find a saker; 0: all. */
	unsigned lookups, lookups_find;
	/* The descriptors of new completion channels cannot be watched. */
	bool channels_unwatchable;
	/* The time that ibv_destroy_qp() takes, in us. */
	useconds_t destroy_us;
	/* The saker has no such device. */
	bool no_iwarp, no_falcon;
};
extern struct fake fake;

/* Resets `fake`. The addresses of the devices are 192.0.2.1, 198.51.100.1, 2001:db8::1, fe80::1 and
 * fe80::2. */
void fake_reset(void);
/* Raises the engine's event `ev`. A connect request is for the listener that was created last. */
void fake_event(const struct saker_event *ev);
/* Raises an event about a QP with ird 3, ord 5 and the private data "word". */
void fake_qp_event(struct ibv_qp *qp, enum saker_event_type type, int status);
/* Raises a connect request of a peer at 192.0.2.9 port 4444, over this transport. */
void fake_request(enum saker_transport transport, uint32_t request);
/* Takes the next event of a channel, which must have one, checks its type, and returns it. */
struct rdma_cm_event *fake_next(struct rdma_event_channel *ch, enum rdma_cm_event_type type);
/* Takes the next event, checks its type and its status, and acknowledges it. */
void fake_expect(struct rdma_event_channel *ch, enum rdma_cm_event_type type, int status);
/* The saker goes, and another one takes its place: raises the event, and the dispatching thread
 * ends. `stop`: its descriptor. */
void fake_restart(int stop);
/* Returns how many holds on attachments there are, beside that of the process. */
unsigned fake_holds(void);
/* Returns whether the channel's descriptor is readable. */
bool fake_readable(struct rdma_event_channel *ch);
/* Returns an IPv4 or IPv6 address with a port (host order). The result is static; the fourth call
 * after it overwrites it. */
struct sockaddr *fake_addr(const char *text, uint16_t port);
/* Returns an id with a QP and a new channel, in ROUTE_RESOLVED, with the remote address 192.0.2.9
 * port 7471. */
struct rdma_cm_id *fake_active(struct rdma_event_channel **ch);
/* Returns an id that listens at the address `text`, port 7471, and its new channel. */
struct rdma_cm_id *fake_passive(struct rdma_event_channel **ch, const char *text);
/* Sets an id's traffic class. */
void fake_set_tos(struct rdma_cm_id *id, uint8_t tos);
/* Destroys the id's QP, the id, and the channel unless it is NULL. */
void fake_destroy(struct rdma_cm_id *id, struct rdma_event_channel *ch);

static inline bool
fake_is_falcon(struct ibv_context *c)
{
	return vb_kind_transport(vb_kind_of(c)) == SAKER_FALCON;
}

#endif
