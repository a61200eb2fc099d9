/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The TCP connections that carry the exchanges of two hosts: they are shared, they end at any time
 * without an effect on connections, on those that are being made, and on requests, and no client
 * holds up another one (doc/falcon-cm.md, section 7).
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "../../../lib/base/mem.h"
#include "../../../lib/engine/transport/falcon/falcon_priv.h"
#include "../../../lib/rof/exchange_priv.h"
#include "../../support/psk.h"
#include "falcon_rig.h"

TestSuite(engine_falcon_carrier, .init = pair_eal_large);

static struct eng_transport *
stage_of(int node)
{
	return frig.n[node].e->transports[0];
}

/* Returns the eng_conn of a node's only carrier. */
static struct eng_conn *
carrier_of(int node)
{
	struct eng_conn *found = NULL;

	for (uint32_t i = 0; i < stage_of(node)->fresh; i++) {
		struct eng_conn *c = &stage_of(node)->conns[i];

		if (c->state != ECONN_CARRIER)
			continue;
		cr_assert_null(found, "node %d has two carriers", node);
		found = c;
	}
	cr_assert_not_null(found, "node %d has no carrier", node);
	return found;
}

Test(engine_falcon_carrier, all_connections_of_two_hosts_share_one_tcp_connection)
{
	struct eng_totals t;

	frig_start(NULL);
	for (unsigned i = 0; i < 20; i++)
		frig_connect();
	frig_works();
	for (int i = 0; i < 2; i++) {
		eng_totals(frig.n[i].e, &t);
		cr_assert_eq(t.conns, 21, "%u", t.conns);
		carrier_of(i);
	}
	frig_stop();
}

Test(engine_falcon_carrier, the_loss_of_the_carrier_ends_no_connection)
{
	frig_start(NULL);
	frig_connect();
	for (int i = 0; i < 4; i++) {
		tcp_abort(carrier_of(i % 2)->tcp, frig.now);
		frig_works();
		frig_sleep(2000000000);
		carrier_of(0); /* it was made again */
		carrier_of(1);
		frig_works();
	}
	cr_assert(frig_no_event(0) && frig_no_event(1));
	cr_assert_eq(saker_disconnect(frig.n[0].qp, false), 0);
	cr_assert_eq(frig_event(1, SAKER_EV_DISCONNECTED).status, 0);
	frig_stop();
}

static void
watchful(struct eng_config *cfg, int node)
{
	cfg->falcon.keepalive_ns = 1000000000;
}

/* A peer that has lost its connections, as after a restart, reports them gone. */
Test(engine_falcon_carrier, a_peer_without_the_connection_ends_it)
{
	struct eng_conn *c;

	frig_start(watchful);
	frig_connect();
	c = carrier_of(1);
	frig.silent = true;
	cr_assert_eq(saker_qp_destroy(frig.n[1].qp), 0);
	frig_turns(100);
	tcp_abort(c->tcp, frig.now); /* and with it the reason that was on its way */
	frig_turns(100);
	frig.silent = false;
	cr_assert_eq(frig_event(0, SAKER_EV_DISCONNECTED).status, -ECONNRESET);
	frig_stop();
}

/* Both hosts open a carrier at the same time: both remove the same one. */
Test(engine_falcon_carrier, of_two_carriers_that_cross_one_survives)
{
	struct saker_listener *l[2];
	struct saker_conn_param p = {0};
	struct saker_event ev;
	struct saker_qp *mine[2];

	frig_start(NULL);
	for (int i = 0; i < 2; i++) {
		l[i] = frig_listen(i);
		mine[i] = frig_qp(i, SAKER_FALCON);
	}
	frig.delay = true;
	for (int i = 0; i < 2; i++)
		cr_assert_eq(saker_connect(mine[i], NULL, &frig.n[!i].addr, FRIG_PORT, &p), 0, "%s",
			saker_error());
	frig_turns(10);
	frig.delay = false;
	for (int i = 0; i < 2; i++) {
		ev = frig_event(i, SAKER_EV_CONNECT_REQUEST);
		cr_assert_eq(saker_accept(frig.n[i].s, ev.request, frig_qp(i, SAKER_FALCON), &p), 0,
			"%s", saker_error());
	}
	for (int i = 0; i < 2; i++) {
		frig_event(i, SAKER_EV_ESTABLISHED);
		frig_event(i, SAKER_EV_ESTABLISHED);
	}
	frig_sleep(100000000);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(tcp_tuple(carrier_of(i)->tcp)->rport == 4795, i == 1,
			"the greater address has opened it");
		cr_assert_eq(saker_unlisten(l[i]), 0);
	}
	frig_stop();
}

/* ---- Losses ---- */

/* Returns the eng_conn of a carrier of a node whose TCP connection is established, or NULL. */
static struct eng_conn *
some_carrier(int node)
{
	struct eng *e = frig.n[node].e;

	for (unsigned s = 0; s < e->cfg.ntransports; s++) {
		for (uint32_t i = 0; i < e->transports[s]->fresh; i++) {
			struct eng_conn *c = &e->transports[s]->conns[i];

			if (c->state == ECONN_CARRIER && eng_falcon_carrier_of(c)->connected)
				return c;
		}
	}
	return NULL;
}

static void
lose_carrier(int node)
{
	struct eng_conn *c = some_carrier(node);

	if (c != NULL)
		tcp_abort(c->tcp, frig.now);
}

/* Makes a connection, and loses the carrier `ask` turns after the request, at the side `node`, and
 * again `answer` turns after the acceptance. */
static void
connect_and_lose(int node, unsigned ask, unsigned answer)
{
	struct saker_conn_param p = {.ird = 4, .ord = 4};
	struct saker_event ev;

	frig_qp(0, SAKER_FALCON);
	frig_qp(1, SAKER_FALCON);
	frig_ask(&p);
	frig_turns(ask);
	lose_carrier(node);
	ev = frig_event(1, SAKER_EV_CONNECT_REQUEST);
	cr_assert_eq(
		saker_accept(frig.n[1].s, ev.request, frig.n[1].qp, &p), 0, "%s", saker_error());
	frig_turns(answer);
	lose_carrier(!node);
	cr_assert_eq(frig_event(1, SAKER_EV_ESTABLISHED).qp, frig.n[1].qp);
	cr_assert_eq(frig_event(0, SAKER_EV_ESTABLISHED).qp, frig.n[0].qp);
	frig_works();
}

static void
lose_at_each_turn(int node)
{
	frig_start(NULL);
	frig_listen(1);
	for (unsigned i = 0; i < 24; i++) {
		connect_and_lose(node, i, (i * 7) % 24);
		cr_assert(frig_no_event(0) && frig_no_event(1), "%u turns: a second one", i);
		cr_assert_eq(saker_qp_destroy(frig.n[0].qp), 0);
		frig_event(1, SAKER_EV_DISCONNECTED);
		cr_assert_eq(saker_qp_destroy(frig.n[1].qp), 0);
	}
	frig_stop();
}

Test(engine_falcon_carrier, requests_outlive_the_carrier_that_the_initiator_loses)
{
	lose_at_each_turn(0);
}

Test(engine_falcon_carrier, requests_outlive_the_carrier_that_the_responder_loses)
{
	lose_at_each_turn(1);
}

/* The peer has lost its carrier, as after a restart, and this side learns that by its request. */
Test(engine_falcon_carrier, the_first_request_after_a_restart_succeeds)
{
	struct eng_conn *c;

	frig_start(NULL);
	frig_connect();
	c = carrier_of(1);
	frig.silent = true;
	tcp_abort(c->tcp, frig.now);
	frig_turns(100);
	frig.silent = false;
	frig_connect();
	frig_works();
	frig_stop();
}

/* A peer that has gone is no reason to wait for ever. */
Test(engine_falcon_carrier, a_request_to_a_dead_peer_fails)
{
	struct saker_conn_param p = {0};
	uint64_t began;

	frig_start(watchful);
	frig_connect();
	frig_qp(0, SAKER_FALCON);
	frig.silent = true;
	began = frig.now;
	frig_ask(&p);
	for (unsigned i = 0; i < 3000 && frig.n[0].s != NULL; i++) {
		struct saker_event ev;

		frig_sleep(100000000);
		if (saker_event(frig.n[0].s, &ev) == 1 && ev.qp == frig.n[0].qp) {
			cr_assert_eq(ev.type, SAKER_EV_UNREACHABLE);
			cr_assert_lt(frig.now - began, 70000000000ull);
			frig.silent = false;
			frig_stop();
			return;
		}
	}
	cr_assert_fail("nobody has heard of the dead peer");
}

/* Both ends of a carrier within one host belong to one pair of addresses, and all frames take one
 * direction. */
Test(engine_falcon_carrier, a_carrier_within_one_host_stays)
{
	struct eng_conn *c;

	frig_start_one(NULL);
	frig_connect();
	c = some_carrier(0);
	cr_assert_not_null(c);
	frig_sleep(25000000000ull);
	cr_assert_eq(c->state, ECONN_CARRIER);
	cr_assert_eq(frig_count(0, "rofx", "ROFX_TIMEOUT"), 0);
	frig_connect();
	frig_works();
	frig_stop();
}

/* ---- Several stages ---- */

#define LOOPS 4u

static unsigned
connections_of(int node, unsigned stage)
{
	struct eng_transport *t = frig.n[node].e->transports[stage];
	unsigned n = 0;

	for (uint32_t i = 0; i < t->fresh; i++)
		n += t->conns[i].state == ECONN_BOUND;
	return n;
}

static unsigned
carriers_of(int node)
{
	unsigned n = 0;

	for (unsigned s = 0; s < LOOPS; s++) {
		struct eng_transport *t = frig.n[node].e->transports[s];

		for (uint32_t i = 0; i < t->fresh; i++)
			n += t->conns[i].state == ECONN_CARRIER;
	}
	return n;
}

/* Each stage of the initiator sends its requests to the stages of the responder in turn, and not to
 * that of its first carrier alone. Chance decides which stages its carriers reach. */
Test(engine_falcon_carrier, connections_spread_over_the_stages_of_both)
{
	frig_start_rss(LOOPS, NULL);
	for (unsigned i = 0; i < 8 * LOOPS; i++)
		frig_connect();
	for (unsigned s = 0; s < LOOPS; s++)
		cr_assert_eq(connections_of(0, s), 8, "stage %u has %u", s, connections_of(0, s));
	cr_assert_geq(carriers_of(0), 2 * LOOPS, "%u pairs of stages", carriers_of(0));
	frig_stop();
}

Test(engine_falcon_carrier, carriers_of_several_stages_may_be_lost)
{
	frig_start_rss(LOOPS, NULL);
	frig_listen(1);
	for (unsigned i = 0; i < 24; i++)
		connect_and_lose(i % 2, i, (i * 7) % 24);
	for (unsigned i = 0; i < 2 * LOOPS * LOOPS; i++)
		lose_carrier(i % 2);
	frig_works();
	frig_sleep(2000000000);
	cr_assert(frig_no_event(0) && frig_no_event(1), "a connection has ended");
	frig_works();
	frig_stop();
}

/* ---- Other identities ---- */

static struct rofx_tls *tls[2];

static void
reloadable(struct eng_config *cfg, int node)
{
	cr_assert(psk_load(&tls[node], 'k'));
	cfg->falcon.psps = ROFX_PSP(PSP_AES_GCM_128);
	cfg->falcon.tls = tls[node];
}

static void
stop_reloadable(void)
{
	frig_stop();
	rofx_tls_destroy(tls[0]);
	rofx_tls_destroy(tls[1]);
}

Test(engine_falcon_carrier, nothing_begins_with_an_identity_that_was_replaced)
{
	struct saker_conn_param p = {0};
	struct saker_qp *first[2];

	frig_start(reloadable);
	frig_connect();
	first[0] = frig.n[0].qp;
	first[1] = frig.n[1].qp;
	cr_assert(psk_load(&tls[1], 'n'));
	frig_listen(1);
	frig_qp(0, SAKER_FALCON);
	frig_ask(&p);
	cr_assert_lt(frig_event(0, SAKER_EV_UNREACHABLE).status, 0);
	cr_assert_geq(frig_count(1, "rofx", "ROFX_RETIRED"), 1);
	cr_assert(frig_no_event(1), "the listener heard of it");
	frig.n[0].qp = first[0];
	frig.n[1].qp = first[1];
	frig_works();
	stop_reloadable();
}

Test(engine_falcon_carrier, a_reload_on_both_sides_makes_another_carrier)
{
	struct eng_conn *c;

	frig_start(reloadable);
	frig_connect();
	c = some_carrier(0);
	cr_assert(psk_load(&tls[0], 'n'));
	cr_assert(psk_load(&tls[1], 'n'));
	frig_connect();
	frig_works();
	frig_sleep(100000000);
	cr_assert_neq(carrier_of(0), c, "the carrier of the replaced identity has ended");
	cr_assert(frig_no_event(0) && frig_no_event(1));
	stop_reloadable();
}

/* The carrier ends while bytes of the handshake wait for a turn of TLS. TCP keeps a connection
 * until its owner has accepted all of them. */
Test(engine_falcon_carrier, a_carrier_that_ends_before_its_turn_leaves_no_connection)
{
	struct saker_conn_param p = {0};

	frig_start(reloadable);
	frig_listen(1);
	frig_qp(0, SAKER_FALCON);
	eng_falcon_of(stage_of(1))->tls_at = SK_NEVER;
	frig_ask(&p);
	cr_assert_lt(frig_event(0, SAKER_EV_UNREACHABLE).status, 0);
	for (unsigned i = 0; i < 100 && (stage_of(0)->nused || stage_of(1)->nused); i++)
		frig_sleep(10000000000);
	cr_assert_eq(stage_of(0)->nused, 0);
	cr_assert_eq(stage_of(1)->nused, 0);
	stop_reloadable();
}

/* ---- Other hosts ---- */

static struct sk_addr second;

static void
two_addresses(struct eng_config *cfg, int node)
{
	if (node != 0)
		return;
	second = cfg->ifs[0].addr;
	second.b[15] += 50;
	cfg->ifs[cfg->nifs] = cfg->ifs[0];
	cfg->ifs[cfg->nifs++].addr = second;
}

/* Two addresses are two hosts, such as two machines behind one saker: no exchange of one of them is
 * on a carrier of the other. */
Test(engine_falcon_carrier, two_hosts_behind_one_engine_share_no_carrier)
{
	struct saker_conn_param p = {.ird = 4, .ord = 4};
	struct saker_event ev;
	unsigned n[2] = {0};

	frig_start(two_addresses);
	frig_connect();
	frig_listen(1);
	frig_qp(0, SAKER_FALCON);
	frig_qp(1, SAKER_FALCON);
	cr_assert_eq(saker_connect(frig.n[0].qp, &second, &frig.n[1].addr, FRIG_PORT, &p), 0, "%s",
		saker_error());
	ev = frig_event(1, SAKER_EV_CONNECT_REQUEST);
	cr_assert(sk_addr_eq(&ev.cm.remote, &second));
	cr_assert_eq(saker_accept(frig.n[1].s, ev.request, frig.n[1].qp, &p), 0);
	frig_event(1, SAKER_EV_ESTABLISHED);
	frig_event(0, SAKER_EV_ESTABLISHED);
	frig_works();
	for (uint32_t i = 0; i < stage_of(0)->fresh; i++) {
		struct eng_conn *c = &stage_of(0)->conns[i];

		if (c->state == ECONN_CARRIER)
			n[sk_addr_eq(&tcp_tuple(c->tcp)->laddr, &second)]++;
	}
	cr_assert_eq(n[0], 1);
	cr_assert_eq(n[1], 1);
	frig_stop();
}

/* ---- Shares ---- */

#define MANY 90u

static void
roomy(struct eng_config *cfg, int node)
{
	cfg->limits.qps = cfg->limits.client_qps = 512;
	cfg->limits.conns = 512;
	cfg->falcon.stack.max_conns = 512;
}

/* A client that requests many connections at once, with much private data, while the wire does not
 * move: another client's request waits for what is in TCP's queue, and one more. */
Test(engine_falcon_carrier, a_client_with_many_requests_holds_up_no_other)
{
	static uint8_t data[500];
	struct saker_conn_param p = {.private_data = data, .private_len = sizeof(data)};
	struct saker_listener *l;
	struct saker_event ev;
	struct fnode other;
	struct saker_qp *qp;
	unsigned n = 0;

	frig_start(roomy);
	frig_connect();
	cr_assert_eq(saker_listen(frig.n[1].s, NULL, FRIG_PORT, 128, NULL, &l), 0);
	frig_client(0, "other", &other);
	frig.delay = true;
	for (unsigned i = 0; i < MANY; i++) {
		frig_qp(0, SAKER_FALCON);
		frig_ask(&p);
	}
	{
		struct saker_qp_attr attr = {.send_cq = other.cq,
			.recv_cq = other.cq,
			.sq_depth = 4,
			.rq_depth = 4,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.transport = SAKER_FALCON};

		cr_assert_eq(saker_qp_create(other.pd, &attr, &qp), 0, "%s", saker_error());
	}
	data[0] = 'x';
	cr_assert_eq(saker_connect(qp, NULL, &frig.n[1].addr, FRIG_PORT, &p), 0);
	frig_turns(100);
	frig.delay = false;
	do {
		ev = frig_event(1, SAKER_EV_CONNECT_REQUEST);
		n++;
	} while (ev.cm.private_data[0] != 'x');
	cr_assert_leq(n, 32768 / 600 + 2, "%u requests came before it", n - 1);
	cr_assert_geq(n, 20, "no requests waited");
	frig_client_end(&other);
	frig_stop();
}

/* ---- Turns ---- */

/* Returns how many exchanges of a node await an answer on a carrier. */
static unsigned
awaiting(int node)
{
	const struct eng_falcon *f = eng_falcon_of(stage_of(node));
	unsigned n = 0;

	for (uint32_t i = 0; i < f->fresh; i++)
		n += f->conns[i].c != NULL && f->conns[i].via != 0;
	return n;
}

/* A source prefix may have begun an eighth of all connections. */
static void
very_roomy(struct eng_config *cfg, int node)
{
	roomy(cfg, node);
	cfg->limits.conns = cfg->falcon.stack.max_conns = 8 * 4 * MANY;
}

/* A peer decides when a carrier ends. Its exchanges are repeated, some in a turn. */
Test(engine_falcon_carrier, the_end_of_a_carrier_repeats_its_exchanges_in_turns)
{
	const struct saker_conn_param p = {0};
	struct saker_listener *l;
	unsigned left, before;

	frig_start(very_roomy);
	cr_assert_eq(saker_listen(frig.n[1].s, NULL, FRIG_PORT, 512, NULL, &l), 0);
	for (unsigned i = 0; i < 3 * MANY; i++) {
		frig_qp(0, SAKER_FALCON);
		frig_ask(&p);
	}
	for (unsigned i = 0; i < 10000 && awaiting(0) < 3 * MANY; i++)
		frig_turn();
	left = awaiting(0);
	cr_assert_geq(left, 3 * MANY, "%u", left);
	frig.silent = true;
	tcp_abort(carrier_of(0)->tcp, frig.now);
	cr_assert_eq(awaiting(0), left, "the end itself visits none");
	while (left > 0) {
		before = left;
		frig_turn();
		left = awaiting(0);
		cr_assert_leq(before - left, 64u, "%u in a turn", before - left);
	}
	frig.silent = false;
	for (unsigned i = 0; i < 3 * MANY; i++)
		frig_event(1, SAKER_EV_CONNECT_REQUEST);
	frig_stop();
}

#define STRAYS 91 /* in a slice */

/* Returns `n` slices of frames that name no exchange: a REJECT of a request that does not exist. */
static struct tcp_slice *
strays(int node, unsigned n)
{
	static const uint8_t frame[16] = {2, 4, 0, 4, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 5};
	struct tcp_slice *chain = NULL;

	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(stage_of(node)->rx_pool);
		struct tcp_slice *s;

		cr_assert_not_null(m);
		for (unsigned k = 0; k < STRAYS; k++)
			memcpy(rte_pktmbuf_append(m, sizeof(frame)), frame, sizeof(frame));
		s = eng_slices(m, 0, STRAYS * sizeof(frame));
		s->next = chain;
		chain = s;
	}
	return chain;
}

static uint64_t
unknown(int node)
{
	return frig_count(node, "rofx", "ROFX_UNKNOWN");
}

/* A segment of small frames costs about as much as hundreds of packets. */
Test(engine_falcon_carrier, the_frames_of_a_turn_are_bounded)
{
	uint64_t before, most = 0;
	struct eng_conn *c;

	frig_start(NULL);
	frig_connect();
	c = carrier_of(1);
	cr_assert(eng_falcon_carrier_deliver(stage_of(1), c, strays(1, 20)));
	most = unknown(1);
	cr_assert_not(eng_falcon_carrier_deliver(stage_of(1), c, NULL), "it is to wait");
	while (unknown(1) < 20 * STRAYS) {
		before = unknown(1);
		frig_turn();
		cr_assert_gt(unknown(1), before);
		most = SK_MAX(most, unknown(1) - before);
	}
	cr_assert_lt(most, STRAYS, "%lu frames in a turn", most);
	frig_connect();
	frig_works();
	frig_stop();
}

#define RECORDS 2000

/* Returns slices of records of TLS, each with one byte of a frame that names no exchange. */
static struct tcp_slice *
small_records(int from, int to)
{
	static const uint8_t frame[16] = {2, 4, 0, 4, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 5};
	struct rofx_link *l = eng_falcon_carrier_of(carrier_of(from))->k->link;
	struct tcp_slice *chain = NULL, **end = &chain;

	for (unsigned i = 0; i < RECORDS;) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(stage_of(to)->rx_pool);
		uint32_t len;

		cr_assert_not_null(m);
		for (unsigned k = 0; k < 50; k++, i++)
			cr_assert_eq(rofx_link_write(l, &frame[i % sizeof(frame)], 1), 1);
		len = (uint32_t)rofx_link_take(
			l, rte_pktmbuf_mtod(m, uint8_t *), rte_pktmbuf_tailroom(m));
		cr_assert_eq(rofx_link_pending(l), 0);
		cr_assert_not_null(rte_pktmbuf_append(m, (uint16_t)len));
		*end = eng_slices(m, 0, len);
		end = &(*end)->next;
	}
	return chain;
}

/* Each record costs a decryption, however little of a frame it has. */
Test(engine_falcon_carrier, the_records_of_tls_in_a_turn_are_bounded)
{
	const struct rofx_carrier *k;
	uint32_t first, before, most;
	struct eng_conn *c;

	frig_start(reloadable);
	frig_connect();
	c = carrier_of(1);
	k = eng_falcon_carrier_of(c)->k;
	first = rofx_carrier_parts(k);
	cr_assert(eng_falcon_carrier_deliver(stage_of(1), c, small_records(0, 1)));
	most = rofx_carrier_parts(k) - first;
	while (unknown(1) < RECORDS / 16) {
		before = rofx_carrier_parts(k);
		frig_turn();
		cr_assert_gt(rofx_carrier_parts(k), before);
		most = SK_MAX(most, rofx_carrier_parts(k) - before);
	}
	cr_assert_leq(most, 80, "%u records in a turn", most);
	frig_works();
	stop_reloadable();
}

/* The peer closes the carrier behind frames that wait, and no frame is lost. */
Test(engine_falcon_carrier, a_fin_waits_for_the_frames_before_it)
{
	struct eng_conn *c;

	frig_start(NULL);
	frig_connect();
	c = carrier_of(1);
	cr_assert(eng_falcon_carrier_deliver(stage_of(1), c, strays(1, 20)));
	eng_conn_peer_fin(stage_of(1), c);
	cr_assert_eq(c->state, ECONN_CARRIER);
	frig_turns(100);
	cr_assert_eq(unknown(1), 20 * STRAYS);
	frig_works();
	frig_stop();
}

/* A carrier that ends returns the mbufs of frames that wait. */
Test(engine_falcon_carrier, frames_that_wait_are_freed_with_their_carrier)
{
	frig_start(NULL);
	frig_connect();
	cr_assert(eng_falcon_carrier_deliver(stage_of(1), carrier_of(1), strays(1, 20)));
	tcp_abort(carrier_of(1)->tcp, frig.now);
	frig_turns(100);
	cr_assert_lt(unknown(1), 20 * STRAYS);
	frig_works();
	frig_stop();
}

/* Takes all mbufs of a pool. Returns their number. */
static unsigned
take_all(struct rte_mempool *mp, void **taken, size_t most)
{
	unsigned n = 0;

	while (n < most && rte_mempool_get(mp, &taken[n]) == 0)
		n++;
	return n;
}

/* Nothing but the opening itself makes the peer send, so it has to leave when mbufs are free. */
Test(engine_falcon_carrier, an_opening_that_finds_no_mbuf_leaves_later)
{
	static void *taken[65536];
	struct saker_conn_param p = {0};
	struct saker_listener *l;
	unsigned n = 0;

	frig_start(NULL);
	l = frig_listen(1);
	frig.n[0].qp = frig_qp(0, SAKER_FALCON);
	frig_ask(&p);
	frig.delay = true; /* the SYN is on its way */
	frig_turns(20);
	carrier_of(0);
	frig.delay = false;
	for (unsigned i = 0; i < 100; i++) { /* frames that leave return their mbufs */
		n += take_all(stage_of(0)->tx_pool, &taken[n], SK_ARRAY_LEN(taken) - n);
		frig_turn();
	}
	cr_assert_gt(frig_count(0, "eng", "ENG_TX_NO_MBUF"), 0);
	rte_mempool_put_bulk(stage_of(0)->tx_pool, taken, n);
	frig_event(1, SAKER_EV_CONNECT_REQUEST);
	saker_unlisten(l);
	frig_stop();
}
