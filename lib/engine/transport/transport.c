/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A transport stage: creation, start and destruction, and the two halves of its turn. The first
 * half receives frames and sends messages to the engine stages. Then the engine stages run. The
 * second half handles their messages and sends frames, so that a response leaves in the turn in
 * which its request arrived.
 */
#include "handoff_priv.h"
#include "link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "../../base/mem.h"

#define BURSTS_TURN 2 /* of a port that a turn receives */
/* Frames between two looks at the free mbufs of a pool. Fewer than a SCARCE_PART-th of rx_pool is
 * scarce, and fewer than a FOREIGN_PART-th of the pool of a sender. */
#define SCARCE_FRAMES 128
#define SCARCE_PART   8
#define FOREIGN_PART  4
/* Segments that TCP sends in a turn. While frames wait in a port, many of them acknowledgements, a
 * turn sends no more than it receives. Otherwise they would wait until the peer resends what they
 * acknowledge. */
#define TCP_BUDGET      256
#define TCP_BUDGET_LEFT (BURSTS_TURN * ENG_BURST)
/* Distances of further prefetches in frames; see receive_ahead(). */
#define AHEAD_SLOT  5
#define AHEAD_KNOWN 2
/* Distances of prefetches in messages; see transport_ahead(). */
#define AHEAD_CONN 6
#define AHEAD_PART 3
/* The interval of net_poll(). The neighbour timers are seconds, so a millisecond is enough. */
#define NET_EVERY_NS 1000000u
/* A longer time between two halves of turns than STOPPED_NS is a stop of the loop: the scheduler
 * ran another thread. A nap is shorter, and eng_transport_slept() excludes sleeps that a frame
 * ends. Only SEEN_NS of it count as time in which the stage would have seen a frame. */
#define STOPPED_NS 2000000u
#define SEEN_NS    250000u
/* After a stop, timers wait for the frames that arrived meanwhile, but not longer than this. */
#define CATCH_UP_NS 1000000u
/* A frame that ended a sleep arrived at an unknown time, but at most this long before the loop ran
 * again: a crowded processor delays the loop, which is no delay of the network. */
#define WOKEN_NS 1000000u

/* Returns the user that pays for what a TCP connection causes. */
static uint32_t
transport_user_of(const struct tcp_conn *conn)
{
	const struct eng_conn *c = tcp_user(conn);
	struct eng_left left;

	if (eng_conn_left(conn, &left))
		return left.user;
	return c != NULL ? c->user : SK_USER_INSTANCE;
}

static struct tcp_rec *
transport_rec_split(void *ctx, struct tcp_conn *conn, struct tcp_rec *rec, uint32_t at)
{
	struct eng_transport *t = ctx;
	struct tcp_rec *rest =
		eng_cuts_split(&t->cuts, transport_user_of(conn), t->now, t->tx_pool, rec, at);

	if (rest == NULL)
		sk_count(t->counters, ENG_CUT_SHARE);
	return rest;
}

static void
transport_rec_free(void *ctx, struct tcp_rec *chain)
{
	eng_rec_free(chain);
}

static void
transport_slice_free(void *ctx, struct tcp_slice *chain)
{
	eng_slice_free(chain);
}

static int
create_stacks(struct eng_transport *t, uint64_t now)
{
	const struct tcp_ops tcp_ops = {.output = eng_tcp_output,
		.deliver = eng_tcp_deliver,
		.slice_free = transport_slice_free,
		.rec_free = transport_rec_free,
		.rec_split = transport_rec_split,
		.event = eng_tcp_event,
		.conn_added = eng_tcp_conn_added,
		.conn_removed = eng_tcp_conn_removed,
		.trace = eng_tcp_trace};
	const struct net_ops net_ops = {
		.send = eng_net_send, .release = eng_net_release, .icmp_error = eng_icmp_error};

	t->net = net_create(&net_ops, t, now);
	t->tcp = tcp_stack_create(&t->e->cfg.tcp, &tcp_ops, t, now);
	if (t->net == NULL || t->tcp == NULL)
		return -ENOMEM;
	for (unsigned k = 0; k < ENG_KINDS; k++) {
		int rc = eng_links[k]->create(t, now);

		if (rc != 0)
			return rc;
		if (t->part[k] != NULL && eng_links[k]->poll != NULL)
			t->packet_links[t->npacket_links++] = eng_links[k];
	}
	return 0;
}

static int
create_pools(struct eng_transport *t)
{
	const struct eng_config *cfg = &t->e->cfg;
	uint32_t frame = 0;

	for (unsigned i = 0; i < cfg->nports; i++)
		frame = SK_MAX(frame, cfg->ports[i].mtu + ETH_MAX);
	/* Some ports count their buffers in KiB, and some require at least 2 KiB. */
	frame = SK_MAX(2048u, (frame + 1023) / 1024 * 1024);
	if (frame > ENG_MAX_FRAME - RTE_PKTMBUF_HEADROOM)
		frame = ENG_MAX_FRAME - RTE_PKTMBUF_HEADROOM;
	/* Received mbufs may be held for a while, so their size is that of the largest frame. */
	t->rx_pool = eng_pool_create(
		"rx", t->e->id, t->index, cfg->limits.rx_mbufs, frame, cfg->socket_id);
	t->tx_pool = eng_pool_create(
		"tx", t->e->id, t->index, cfg->limits.tx_mbufs, ENG_COPY_MAX, cfg->socket_id);
	return t->rx_pool == NULL || t->tx_pool == NULL ? -ENOMEM : 0;
}

void
eng_transport_link(struct eng_transport *t, unsigned stage)
{
	const struct eng_rings *r = &t->e->rings;

	if (t->to_stage[stage] != NULL)
		return;
	t->to_stage[stage] = r->to_stage[t->index][stage];
	t->from_stage[stage] = r->to_transport[t->index][stage];
	if (t->to_stage[stage] == NULL)
		return;
	t->linked[t->nlinked++] = (uint8_t)stage;
	eng_crossings_add(t, stage);
}

struct eng_transport *
eng_transport_create(struct eng *e, unsigned index, uint64_t now, char *err, size_t errlen)
{
	struct eng_transport *t = aligned_alloc(64, (sizeof(*t) + 63) & ~63ul);
	const struct tcp_config *tc = &e->cfg.tcp;
	const uint32_t tuples =
		tc->max_conns + tc->max_half_open + tc->max_time_wait + tc->max_left;
	const uint32_t left = e->cfg.limits.tx_mbufs / ENG_LEFT_PART;

	if (t == NULL)
		goto no_memory;
	memset(t, 0, sizeof(*t));
	t->e = e;
	t->index = index;
	t->now = t->looked = t->empty_at = now;
	t->loop_port = (uint16_t)e->cfg.nports;
	for (unsigned s = 0; s < e->cfg.nstages; s++)
		eng_transport_link(t, s);
	t->from_control = e->rings.control_transport[index];
	t->to_control = e->rings.transport_control[index];
	TAILQ_INIT(&t->free);
	TAILQ_INIT(&t->pending);
	TAILQ_INIT(&t->unnoticed);
	sk_wheel_init(&t->wheel, now);
	/* A closed connection keeps its index until no stage holds it, so there are more than TCP
	 * can have at a time. */
	t->nconns = tc->max_conns * 2;
	t->conns = sk_mem_alloc(t->nconns * sizeof(t->conns[0]));
	t->notices = calloc(ENG_CTL_NOTICES, sizeof(t->notices[0]));
	t->recorder = eng_recorder_create();
	if (t->recorder == NULL || t->conns == NULL || t->notices == NULL || create_pools(t) != 0 ||
		eng_share_init(&t->conn_share, &e->cfg.limits, tc->max_conns, 1) != 0 ||
		eng_share_init(&t->left_share, &e->cfg.limits, left, 1) != 0 ||
		eng_cuts_init(&t->cuts, &e->cfg.limits, e->cfg.limits.tx_mbufs / ENG_CUTS_PART,
			now) != 0 ||
		eng_tuples_create(t, tuples) != 0 || create_stacks(t, now) != 0) {
		eng_transport_destroy(t);
		goto no_memory;
	}
	while (t->nnotices < ENG_CTL_NOTICES) {
		t->notices_free[t->nnotices] = &t->notices[t->nnotices];
		t->nnotices++;
	}
	return t;
no_memory:
	snprintf(err, errlen, "no memory for transport stage %u (%u receive and %u send mbufs)",
		index, e->cfg.limits.rx_mbufs, e->cfg.limits.tx_mbufs);
	return NULL;
}

static int
start_links(struct eng_transport *t)
{
	int rc = 0;

	for (unsigned k = 0; k < ENG_KINDS && rc == 0; k++)
		if (t->part[k] != NULL && eng_links[k]->start != NULL)
			rc = eng_links[k]->start(t);
	return rc;
}

int
eng_transport_start(struct eng_transport *t, uint64_t now, char *err, size_t errlen)
{
	const struct eng_config *cfg = &t->e->cfg;
	char text[SK_ADDR_STRLEN];
	int rc;

	for (unsigned i = 0; i < cfg->nifs; i++) {
		rc = eng_transport_add_if(t, &cfg->ifs[i], now);
		if (rc == 0)
			continue;
		snprintf(err, errlen, "address %s on port %u: %s",
			sk_addr_str(&cfg->ifs[i].addr, text), cfg->ifs[i].port, strerror(-rc));
		return rc;
	}
	rc = net_if_add_loop(t->net, t->loop_port, cfg->nports > 0 ? cfg->ports[0].mtu : 1500);
	for (unsigned i = 0; i < cfg->nroutes && rc >= 0; i++) {
		rc = net_route_add(t->net, &cfg->routes[i].dst, cfg->routes[i].prefix,
			&cfg->routes[i].gateway);
		if (rc != 0)
			snprintf(err, errlen, "route to %s: %s",
				sk_addr_str(&cfg->routes[i].dst, text), strerror(-rc));
	}
	return rc < 0 ? rc : start_links(t);
}

static void
free_listeners(struct eng_transport *t)
{
	struct eng_listener *l;

	for (unsigned b = 0; b < ENG_LISTENER_BUCKETS; b++) {
		while ((l = LIST_FIRST(&t->listeners[b])) != NULL) {
			LIST_REMOVE(l, next);
			free(l);
		}
	}
}

/* Frees the messages in a ring of an engine stage, and their payload. */
static void
transport_drain_ring(struct rte_ring *r)
{
	struct eng_dmsg m;

	while (r != NULL && rte_ring_sc_dequeue_elem(r, &m, sizeof(m)) == 0)
		eng_conn_drop(&m);
}

void
eng_transport_destroy(struct eng_transport *t)
{
	if (t == NULL)
		return;
	for (unsigned s = 0; s < t->e->cfg.nstages; s++)
		transport_drain_ring(t->e->rings.to_transport[t->index][s]);
	for (unsigned k = ENG_KINDS; k-- > 0;)
		if (t->part[k] != NULL)
			eng_links[k]->destroy(t);
	if (t->tcp != NULL)
		tcp_stack_destroy(t->tcp);
	if (t->net != NULL)
		net_destroy(t->net);
	for (uint32_t i = 0; i < t->fresh; i++)
		eng_startup_free(t, &t->conns[i]);
	free_listeners(t);
	for (unsigned i = 0; i < ENG_MAX_PORTS; i++)
		rte_pktmbuf_free_bulk(t->tx[i].m, t->tx[i].n);
	while (t->loop_head != t->loop_tail)
		rte_pktmbuf_free(t->loop[t->loop_head++ & (ENG_LOOP_QUEUE - 1)]);
	while (eng_tx_spares(t) > 0)
		rte_mbuf_raw_free(t->spare[t->spare_out++ % ENG_SPARE]);
	eng_tuples_destroy(t);
	sk_share_fini(&t->conn_share);
	sk_share_fini(&t->left_share);
	eng_cuts_fini(&t->cuts);
	eng_pool_free(t->rx_pool);
	eng_pool_free(t->tx_pool);
	sk_mem_free(t->conns, t->nconns * sizeof(t->conns[0]));
	eng_recorder_free(t->recorder);
	free(t->notices);
	free(t);
}

/* Lets the transports handle frames of a burst whose headers match an open connection. Returns the
 * number of frames that were taken from its beginning. */
static unsigned
receive_known(struct eng_transport *t, uint16_t port, struct rte_mbuf **m, unsigned n)
{
	unsigned taken = 0;

	for (unsigned k = 0; k < t->npacket_links && taken == 0; k++)
		taken = t->packet_links[k]->rx_known(t, port, m, n);
	return taken;
}

/* Puts the VLAN tags back that a driver has stripped, which nobody requested. A frame without room
 * for its tag stays without, and no interface of a VLAN accepts it. */
static void
restore_tags(struct rte_mbuf **m, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (m[i]->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED)
			(void)rte_vlan_insert(&m[i]);
}

/* Prefetches the slot in t->hits of the connection of a frame. */
static inline void
slot_ahead(const struct eng_transport *t, const struct rte_mbuf *m)
{
	struct wire_plain p;

	if (wire_plain_match(&p, rte_pktmbuf_mtod(m, const uint8_t *), m->data_len))
		sk_prefetch(eng_hits_of(t, p.addrs, p.ports), 1);
}

/* Prefetches the frames of a burst that receive_ahead() comes too late for. */
static void
burst_ahead(const struct eng_transport *t, struct rte_mbuf *const *m, unsigned n)
{
	for (unsigned i = 1; i < SK_MIN(n, (unsigned)ENG_AHEAD_FRAME); i++)
		eng_frame_prefetch(m[i]);
	for (unsigned i = 1; i < SK_MIN(n, (unsigned)AHEAD_SLOT); i++)
		slot_ahead(t, m[i]);
}

/* Prefetches what frames behind frame `i` of `n` need: first the frame, then the slot of its
 * connection, and then the connection. */
static inline void
receive_ahead(const struct eng_transport *t, uint16_t port, struct rte_mbuf *const *m, unsigned i,
	unsigned n)
{
	const struct rte_mbuf *next;
	struct wire_plain p;

	if (i + AHEAD_KNOWN >= n)
		return;
	next = m[i + AHEAD_KNOWN];
	if (i + ENG_AHEAD_FRAME < n)
		eng_frame_prefetch(m[i + ENG_AHEAD_FRAME]);
	if (i + AHEAD_SLOT < n)
		slot_ahead(t, m[i + AHEAD_SLOT]);
	if (wire_plain_match(&p, rte_pktmbuf_mtod(next, const uint8_t *), next->data_len))
		sk_prefetch(eng_conn_known(t, port, &p), 5);
}

/* Does not count the mbufs in the caches of lcores, as rte_mempool_avail_count() would. */
static inline bool
is_scarce(const struct rte_mempool *mp, uint32_t part)
{
	return rte_mempool_get_ops(mp->ops_index)->get_count(mp) < mp->size / part;
}

/* Replaces the frames that lie in mbufs of other pools by copies in rx_pool. Their sender has
 * few mbufs left, and if the engines that receive from it held all of them, it could not receive a
 * frame itself. Drops the frames for which rx_pool has no mbuf. Returns the number of frames. */
static uint16_t
own_frames(struct eng_transport *t, struct rte_mbuf **m, uint16_t n)
{
	uint16_t have = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *own = m[i];

		if (own->pool != t->rx_pool) {
			own = rte_pktmbuf_copy(m[i], t->rx_pool, 0, UINT32_MAX);
			rte_pktmbuf_free(m[i]);
		}
		if (own != NULL)
			m[have++] = own;
		else
			sk_count(t->counters, ENG_RX_NO_MBUF);
	}
	return have;
}

/* Looks at the free mbufs: those of rx_pool, and those of the pool of a received frame. Returns the
 * number of frames of the burst that are left. */
static __attribute__((noinline)) uint16_t
look_at_pools(struct eng_transport *t, const struct eng_port *p, struct rte_mbuf **m, uint16_t n)
{
	bool scarce = is_scarce(t->rx_pool, SCARCE_PART);
	bool foreign = p->foreign && is_scarce(m[0]->pool, FOREIGN_PART);

	/* While mbufs are scarce, there is a look at each burst. */
	t->frames_left = scarce || foreign ? 0 : SCARCE_FRAMES;
	for (unsigned k = 0; k < t->npacket_links && scarce != t->scarce; k++)
		t->packet_links[k]->scarce(t, scarce);
	t->scarce = scarce;
	return foreign ? own_frames(t, m, n) : n;
}

/* Receives a burst of frames. Returns their number. */
static unsigned
transport_receive(struct eng_transport *t, uint16_t port)
{
	struct rte_mbuf *m[ENG_BURST];
	const struct eng_port *p = &t->e->ports[port];
	uint16_t n;

	if (t->index >= p->rx_queues)
		return 0;
	n = rte_eth_rx_burst(p->dev.id, (uint16_t)t->index, m, ENG_BURST);
	if (n == 0)
		return 0;
	t->frames_left -= n;
	if (t->frames_left < 0)
		n = look_at_pools(t, p, m, n);
	if (p->tagged)
		restore_tags(m, n);
	eng_frame_prefetch(m[0]);
	if (n > 1)
		burst_ahead(t, m, n);
	for (unsigned i = 0, taken; i < n; i += taken) {
		taken = receive_known(t, port, m + i, n - i);
		if (taken > 0)
			continue;
		receive_ahead(t, port, m, i, n);
		eng_rx_frame(t, port, m[i]);
		taken = 1;
	}
	return n;
}

/* Returns whether an engine stage of this loop has not handled what the last turn received. More
 * frames then wait in the queue of the port, where their number is limited and their wait is
 * measured, and not in the ring to the stage, where they hold mbufs. */
static bool
stages_are_behind(const struct eng_transport *t)
{
	for (unsigned i = 0; i < t->nlinked; i++) {
		unsigned stage = t->linked[i];

		if (!eng_stage_is_far(t, stage) &&
			rte_ring_count(t->to_stage[stage]) > t->e->bounds.behind)
			return true;
	}
	return false;
}

/* Receives the frames of a port, at most BURSTS_TURN bursts, and sets *work if there was one. A
 * burst with pull requests is the last one: their initiator has a request window of 64, and waits
 * until the turn has answered some of them. Returns whether frames may be left. */
static bool
receive_port(struct eng_transport *t, uint16_t port, bool *work)
{
	for (unsigned k = 0; k < BURSTS_TURN; k++) {
		unsigned n = transport_receive(t, port);

		*work |= n > 0;
		if (n < ENG_BURST)
			return false;
		if (t->pulled)
			break;
	}
	return true;
}

/* Handles the frames that the loop port held when the turn began. */
static void
receive_loop(struct eng_transport *t)
{
	for (uint32_t end = t->loop_tail; t->loop_head != end;)
		eng_rx_frame(t, t->loop_port, t->loop[t->loop_head++ & (ENG_LOOP_QUEUE - 1)]);
}

/* Returns whether frames that arrived during a stop of the loop may be unread. */
static bool
is_behind(const struct eng_transport *t, uint64_t now)
{
	return t->resumed != 0 && now - t->resumed < CATCH_UP_NS;
}

/* Begins a half of a turn. */
static void
begin_half(struct eng_transport *t, uint64_t now)
{
	uint64_t gap = now > t->now ? now - t->now : 0;

	t->now = now;
	if (gap < STOPPED_NS)
		return;
	t->empty_at += gap;
	t->resumed = now;
	for (unsigned k = 0; k < t->npacket_links; k++)
		t->packet_links[k]->stopped(t, gap - SEEN_NS);
}

void
eng_transport_slept(struct eng_transport *t, uint64_t until)
{
	if (until <= t->now)
		return;
	t->now = t->empty_at = until;
	t->looked = SK_MAX(t->looked, until - SK_MIN(until, (uint64_t)WOKEN_NS));
}

bool
eng_transport_rx(struct eng_transport *t, uint64_t now)
{
	bool work = false, behind = t->left && stages_are_behind(t);

	begin_half(t, now);
	t->left = behind;
	t->pulled = false;
	t->waited = now - t->looked;
	for (unsigned i = 0; i < t->e->cfg.nports; i++) {
		if (eng_device_is_gone(&t->e->ports[i].dev))
			eng_port_leave(t, (uint16_t)i);
		else if (!behind)
			t->left |= receive_port(t, (uint16_t)i, &work);
	}
	if (!t->left) {
		t->empty_at = t->looked = now;
		t->resumed = 0;
	}
	if (t->loop_head != t->loop_tail) {
		receive_loop(t);
		work = true;
	}
	if (t->handoff != NULL)
		work |= eng_handoff_rx(t);
	for (unsigned k = 0; k < t->npacket_links && !is_behind(t, now); k++)
		t->packet_links[k]->timers(t, now);
	if (eng_conns_due(t))
		work |= eng_conns_pending(t);
	if (t->wheel.armed > 0)
		work |= eng_startup_poll(t, now) > 0;
	return work;
}

static inline const struct eng_conn *
sender_of(const struct eng_transport *t, const struct eng_dmsg *m)
{
	return &t->conns[SK_MIN(m->id_type >> 4, t->nconns - 1)];
}

/* Prefetches the connections of messages behind message `i` of `n`: first the connection, then what
 * it points to, and then what that points to. */
static inline void
transport_ahead(const struct eng_transport *t, const struct eng_dmsg *m, unsigned i, unsigned n)
{
	const struct eng_conn *c;

	if (i + AHEAD_CONN < n)
		sk_prefetch(sender_of(t, &m[i + AHEAD_CONN]), 2);
	if (i + AHEAD_PART < n) {
		c = sender_of(t, &m[i + AHEAD_PART]);
		if (c->part != NULL)
			sk_prefetch(c->part, 6);
		else
			sk_prefetch(c->tcp, 5);
	}
	if (i + 1 < n) {
		c = sender_of(t, &m[i + 1]);
		if (c->part != NULL && c->link->ahead != NULL)
			c->link->ahead(c);
	}
}

static bool
transport_take_messages(struct eng_transport *t, struct rte_ring *r)
{
	struct eng_dmsg m[ENG_BURST];
	unsigned n, all = 0;

	do {
		n = rte_ring_sc_dequeue_burst_elem(r, m, sizeof(m[0]), ENG_BURST, NULL);
		for (unsigned i = 0; i < n; i++) {
			transport_ahead(t, m, i, n);
			eng_conn_message(t, &m[i]);
		}
		all += n;
	} while (n == ENG_BURST && all < t->e->bounds.messages);
	return all > 0;
}

bool
eng_transport_unsent(const struct eng_transport *t)
{
	return t->unsent;
}

static unsigned
send_tcp(struct eng_transport *t, uint64_t now)
{
	unsigned budget = t->left ? TCP_BUDGET_LEFT : TCP_BUDGET;
	unsigned sent = tcp_stack_poll(t->tcp, now, budget);

	t->unsent = sent >= budget;
	return sent;
}

bool
eng_transport_tx(struct eng_transport *t, uint64_t now)
{
	bool work = false;

	begin_half(t, now);
	if (t->handoff != NULL)
		work |= eng_handoff_collect(t);
	for (unsigned i = 0; i < t->nlinked; i++) {
		struct rte_ring *r = t->from_stage[t->linked[i]];

		if (!rte_ring_empty(r))
			work |= transport_take_messages(t, r);
	}
	if (!rte_ring_empty(t->from_control))
		work |= eng_transport_ctl(t);
	t->unsent = false;
	if (tcp_stack_deadline(t->tcp) <= now)
		work |= send_tcp(t, now) > 0;
	for (unsigned k = 0; k < t->npacket_links; k++)
		work |= t->packet_links[k]->poll(t, now);
	if (now >= t->net_due) {
		net_poll(t->net, now);
		t->net_due = SK_MIN(net_deadline(t->net), now + NET_EVERY_NS);
	}
	if (t->tx_waiting > 0)
		eng_tx_flush(t);
	else
		eng_tx_spare(t);
	if (t->nfar > 0)
		eng_crossings_count(t);
	return work;
}

uint64_t
eng_transport_deadline(const struct eng_transport *t)
{
	uint64_t due = SK_MIN(tcp_stack_deadline(t->tcp), net_deadline(t->net));

	if (t->loop_head != t->loop_tail || eng_conns_due(t))
		return 0;
	for (unsigned k = 0; k < t->npacket_links; k++)
		due = SK_MIN(due, t->packet_links[k]->deadline(t));
	return SK_MIN(due, sk_wheel_next(&t->wheel));
}

bool
eng_transport_refused(const struct eng_transport *t)
{
	return t->tx_waiting > 0;
}

const uint64_t *
eng_transport_counters(const struct eng_transport *t, const struct sk_reason_list *list)
{
	if (list == &wire_reasons)
		return t->wire_counters;
	if (list == &net_reasons)
		return net_counters(t->net);
	if (list == &tcp_reasons)
		return tcp_stack_counters(t->tcp);
	if (list == &eng_reasons)
		return t->counters;
	for (unsigned k = 0; k < ENG_KINDS; k++) {
		const uint64_t *counters =
			t->part[k] != NULL ? eng_links[k]->counters(t, list) : NULL;

		if (counters != NULL)
			return counters;
	}
	return NULL;
}

static void
count_pool(const struct rte_mempool *mp, uint32_t *all, uint32_t *unused)
{
	*all += mp->size;
	*unused += rte_mempool_avail_count(mp);
}

void
eng_transport_totals(const struct eng_transport *t, struct eng_totals *out)
{
	out->conns += t->nused;
	count_pool(t->rx_pool, &out->rx_mbufs, &out->rx_mbufs_free);
	count_pool(t->tx_pool, &out->tx_mbufs, &out->tx_mbufs_free);
	out->tx_mbufs_free += eng_tx_spares(t);
}

/* For each connection, the hash table has the key, a signature and two indices. */
size_t
eng_transport_conn_size(void)
{
	return tcp_conn_size() + sizeof(struct eng_conn) + 2 * sizeof(struct tcp_tuple) +
	       2 * sizeof(void *) + sizeof(uint32_t);
}
