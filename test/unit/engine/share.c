/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shares of the control stage's pools: each refuses beyond the quota of a client, the most of a
 * user, and the part that is not reserved for others, and every path that frees an object gives its
 * unit back (script_free() asserts that no unit is held).
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

#include "../../../lib/engine/control/cm/cm.h"
#include "script.h"

#define CLIENTS 3

static struct script *s;
static struct hand hand[CLIENTS]; /* two clients of user 1, one of user 2 */

/* Users 1 and 2 have a minimum of 2 of 8 units and may have 6. */
static void
small(struct eng_config *cfg)
{
	struct eng_limits *l = &cfg->limits;

	cfg->falcon.enabled = true;
	l->qps = l->cqs = l->mrs = l->mws = l->pds = l->srqs = l->listeners = 8;
	l->client_qps = l->client_cqs = l->client_mrs = l->client_mws = 5;
	l->users = 2;
	l->user_min = 25;
	l->user_most = 75;
}

static void
begin(void (*tweak)(struct eng_config *cfg))
{
	static const uint16_t user[CLIENTS] = {1, 1, 2};

	s = script_new(tweak);
	for (unsigned i = 0; i < CLIENTS; i++)
		hand_attach_as(&hand[i], s, user[i]);
}

static void
end(void)
{
	script_free(s);
	for (unsigned i = 0; i < CLIENTS; i++)
		hand_free(&hand[i]);
}

/* The objects that a client needs to create any other one. */
struct kit {
	uint32_t pd, cq, xrcd;
};

static struct kit
kit_of(struct hand *c)
{
	struct shm_msg m = {0};
	struct kit k = {.pd = hand_pd(c), .cq = hand_cq(c)};

	cr_assert_eq(hand_do(c, &m, SHM_XRCD_OPEN), 0);
	k.xrcd = m.body.xrcd.xrcd;
	return k;
}

static struct shm_msg
of_pd(const struct kit *k)
{
	return (struct shm_msg){0};
}

static struct shm_msg
of_cq(const struct kit *k)
{
	return (struct shm_msg){.body.cq.depth = 4};
}

static struct shm_msg
of_mr(const struct kit *k)
{
	return (struct shm_msg){.body.mr = {.pd = k->pd,
					.len = 64,
					.nextents = 1,
					.extents = {{.offset = hand[0].h.mem, .len = 64}}}};
}

static struct shm_msg
of_mw(const struct kit *k)
{
	return (struct shm_msg){.body.mw = {.pd = k->pd, .type = 1}};
}

static struct shm_msg
of_srq(const struct kit *k)
{
	return (struct shm_msg){
		.body.srq = {.pd = k->pd, .depth = 4, .xrcd = SHM_NONE, .cq = SHM_NONE}};
}

static struct shm_msg
of_qp(const struct kit *k)
{
	return (struct shm_msg){.body.qp = {.pd = k->pd,
					.send_cq = k->cq,
					.recv_cq = k->cq,
					.srq = SHM_NONE,
					.sq_depth = 4,
					.rq_depth = 4}};
}

static struct shm_msg
of_xrcd(const struct kit *k)
{
	return (struct shm_msg){0};
}

static struct shm_msg
of_listener(const struct kit *k)
{
	return (struct shm_msg){0};
}

static struct shm_msg
of_ah(const struct kit *k)
{
	struct shm_msg m = {.body.ah.pd = k->pd};

	sk_addr_parse("10.0.0.9", &m.body.ah.remote);
	return m;
}

static const struct pool {
	enum ctl_pool pool;
	const char *what;
	enum shm_op create, destroy;
	struct shm_msg (*command)(const struct kit *k);
	size_t handle; /* offset of the handle in the reply's body */
} pools[] = {
	{CTL_POOL_PD, "protection domains", SHM_PD_CREATE, SHM_PD_DESTROY, of_pd, 0},
	{CTL_POOL_CQ, "completion queues", SHM_CQ_CREATE, SHM_CQ_DESTROY, of_cq,
		offsetof(struct shm_cq_info, cq)},
	{CTL_POOL_MR, "memory regions", SHM_MR_CREATE, SHM_MR_DESTROY, of_mr,
		offsetof(struct shm_mr, mr)},
	{CTL_POOL_MW, "memory windows", SHM_MW_CREATE, SHM_MW_DESTROY, of_mw,
		offsetof(struct shm_mw, mw)},
	{CTL_POOL_SRQ, "shared receive queues", SHM_SRQ_CREATE, SHM_SRQ_DESTROY, of_srq,
		offsetof(struct shm_srq_info, srq)},
	{CTL_POOL_QP, "QPs", SHM_QP_CREATE, SHM_QP_DESTROY, of_qp,
		offsetof(struct shm_qp_info, qp)},
	{CTL_POOL_XRCD, "XRC domains", SHM_XRCD_OPEN, SHM_XRCD_CLOSE, of_xrcd,
		offsetof(struct shm_xrcd, xrcd)},
	{CTL_POOL_LISTENER, "listeners", SHM_LISTEN, SHM_UNLISTEN, of_listener,
		offsetof(struct shm_cm, listener)},
	{CTL_POOL_AH, "address handles", SHM_AH_CREATE, SHM_AH_DESTROY, of_ah,
		offsetof(struct shm_ah, ah)},
};

/* Creates an object of the pool. Returns its handle, or -errno with the refusal in *m. */
static int64_t
create(struct hand *c, const struct kit *k, const struct pool *p, struct shm_msg *m)
{
	uint32_t handle;
	int rc;

	*m = p->command(k);
	rc = hand_do(c, m, p->create);
	if (rc < 0)
		return rc;
	memcpy(&handle, m->body.raw + p->handle, sizeof(handle));
	return handle;
}

static void
expect_text(const struct shm_msg *m, const char *fmt, uint32_t n, const char *what)
{
	char want[128];

	snprintf(want, sizeof(want), fmt, n, what);
	cr_assert_str_eq(m->body.text, want);
}

Test(engine_share, every_pool_refuses_by_client_by_user_and_by_the_common_part)
{
	for (unsigned i = 0; i < SK_ARRAY_LEN(pools); i++) {
		const struct pool *p = &pools[i];
		struct sk_share *share;
		struct kit kit[CLIENTS];
		struct shm_msg m;
		uint32_t cap;
		int64_t rc;

		begin(small);
		share = &s->control->share[p->pool];
		for (unsigned n = 0; n < CLIENTS; n++)
			kit[n] = kit_of(&hand[n]);
		cap = ctl_most(s->control, hand_client(&hand[0]), p->pool);
		while ((rc = create(&hand[0], &kit[0], p, &m)) >= 0)
			;
		/* Listeners have no quota of a client but the number of all. */
		if (cap < share->most) {
			cr_assert_eq(rc, -EDQUOT);
			expect_text(
				&m, "no more than %u %s are allowed to one client", cap, p->what);
		}
		while ((rc = create(&hand[1], &kit[1], p, &m)) >= 0)
			;
		if (share->used[1] == share->most) {
			cr_assert_eq(rc, -EDQUOT, "%s", p->what);
			expect_text(&m, "no more than %u %s are allowed to one user", share->most,
				p->what);
		} else {
			cr_assert_eq(rc, -ENOSPC, "%s", p->what);
			expect_text(&m, "the free ones of %u %s are reserved for other users",
				share->size, p->what);
		}
		/* User 1 has all that it can get; user 2 still gets its minimum. */
		for (uint32_t n = share->used[2]; n < share->minimum; n++)
			cr_assert_geq(create(&hand[2], &kit[2], p, &m), 0, "%s: %s", p->what,
				m.body.text);
		cr_assert_geq(share->used[2], share->minimum);
		cr_assert_gt(share->minimum, 0);
		cr_assert_gt(script_counter(s, ENG_QUOTA), 0);
		end();
	}
}

static void
larger(struct eng_config *cfg)
{
	small(cfg);
	cfg->limits.qps = cfg->limits.cqs = cfg->limits.mrs = cfg->limits.mws = 48;
	cfg->limits.pds = cfg->limits.srqs = cfg->limits.listeners = 48;
	cfg->limits.client_qps = cfg->limits.client_cqs = cfg->limits.client_mrs = 24;
	cfg->limits.client_mws = 24;
}

static uint32_t
draw(uint32_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 17;
	*x ^= *x << 5;
	return *x;
}

/* Objects are created and destroyed in random order, some commands fail at a stage, and clients
 * leave with objects. script_free() asserts that every unit has come back. */
Test(engine_share, all_units_come_back_whatever_the_order)
{
	uint32_t seed = 4711;

	for (unsigned round = 0; round < 30; round++) {
		struct kit kit[CLIENTS];

		begin(larger);
		for (unsigned n = 0; n < CLIENTS; n++)
			kit[n] = kit_of(&hand[n]);
		for (unsigned step = 0; step < 120; step++) {
			unsigned n = draw(&seed) % CLIENTS;
			const struct pool *p = &pools[draw(&seed) % SK_ARRAY_LEN(pools)];
			struct shm_msg m;

			s->fail = draw(&seed) % 8           ? -1
				  : p->pool == CTL_POOL_QP  ? ENG_CE_QP_ADD
				  : p->pool == CTL_POOL_SRQ ? ENG_CE_SRQ_ADD
							    : ENG_CT_LISTEN;
			s->fail_status = -ENOBUFS;
			if (draw(&seed) % 3)
				create(&hand[n], &kit[n], p, &m);
			else
				hand_destroy(&hand[n], p->destroy, draw(&seed) % 8);
			s->fail = -1;
		}
		if (round % 2)
			eng_control_detach(s->control, hand[round % CLIENTS].number);
		end();
	}
}

static void
hosts(struct eng_config *cfg)
{
	cfg->falcon.enabled = true;
	cfg->limits.qps = 256; /* 64 host connections, 8 of one network */
	cfg->limits.users = 2;
	cfg->limits.user_min = 10;
}

Test(engine_share, the_device_reports_what_the_user_may_have)
{
	struct shm_msg m = {0};

	begin(small);
	s->control->share[CTL_POOL_CQ].most = 3;
	cr_assert_eq(hand_do(&hand[0], &m, SHM_QUERY_DEVICE), 0);
	cr_assert_eq(m.body.device.max_qp, 5);
	cr_assert_eq(m.body.device.max_cq, 3);
	end();
}

/* A command waits while the share of its user has too few messages, and the commands of another
 * user do not. */
Test(engine_share, messages_of_one_user_leave_those_of_others)
{
	struct sk_share *share;
	struct shm_msg m = {0};
	struct kit kit[CLIENTS];

	begin(hosts);
	for (unsigned n = 0; n < CLIENTS; n++)
		kit[n] = kit_of(&hand[n]);
	share = &s->control->share[CTL_POOL_MESSAGE];
	sk_share_fini(share);
	cr_assert_eq(sk_share_init(share, 12, SCRIPT_CLIENTS + 1, 3, 2, 0), 0);
	/* The instance and two users have 2 each, and 6 are common: user 1 gets 8. */
	s->hold = ENG_CE_QP_ADD;
	for (unsigned i = 0; i < 10; i++) {
		m = of_qp(&kit[i % 2]);
		hand_send(&hand[i % 2], &m, SHM_QP_CREATE);
	}
	script_turns(s, 50);
	cr_assert_eq(s->nheld, 7, "%u commands", s->nheld); /* each may need two messages */
	cr_assert_eq(share->used[1], 7);
	cr_assert_eq(hand_destroy(&hand[2], SHM_CQ_DESTROY, kit[2].cq), 0);
	script_release(s, 0);
	for (unsigned i = 0; i < 10; i++) {
		cr_assert(hand_next(&hand[i % 2], &m));
		cr_assert_eq(m.status, 0, "%s", m.body.text);
	}
	end();
}

/* ---- Host connections ---- */

/* Sends the request of a host for a host connection. Returns whether it was accepted so far. */
static bool
host_asks_as(const char *addr, uint32_t qpn, uint32_t to_qpn)
{
	struct eng_ctl *m = script_say(s, ENG_TC_REQUEST);
	unsigned refused = script_count(s, ENG_CT_REJECT);

	m->conn = s->next_conn++;
	m->peer.outcome = (struct eng_outcome){.kind = ENG_FALCON,
		.falcon = {.transport = ROF_UD,
			.addressing = ROFX_ADDRESS,
			.ordering = ROF_ORDER_NONE,
			.errors = ROF_ERRORS_COMPLETE,
			.qpn = qpn,
			.to_qpn = to_qpn}};
	sk_addr_parse(addr, &m->peer.tuple.raddr);
	sk_addr_parse("10.0.0.1", &m->peer.tuple.laddr);
	script_send(s, m);
	script_turns(s, 6);
	return script_count(s, ENG_CT_REJECT) == refused;
}

static bool
host_asks(const char *addr)
{
	return host_asks_as(addr, 0, 0);
}

static void
make_ud(struct hand *c, const struct kit *k)
{
	struct shm_msg m = of_qp(k);

	m.body.qp.type = SHM_UD;
	m.body.qp.transport = SHM_FALCON;
	cr_assert_eq(hand_do(c, &m, SHM_QP_CREATE), 0, "%s", m.body.text);
}

Test(engine_share, hosts_of_one_network_leave_host_connections_for_others)
{
	struct kit k;
	char addr[64];

	begin(hosts);
	/* With a random key, one network in a thousand shares the counter of another. */
	s->control->qpn_key = (struct sk_key){{1, 2}};
	k = kit_of(&hand[0]);
	make_ud(&hand[0], &k);
	for (unsigned i = 0; i < 20; i++) {
		snprintf(addr, sizeof(addr), "2001:db8:0:1::%x", i + 1);
		cr_assert_eq(host_asks(addr), i < 8, "host %u", i);
	}
	cr_assert_eq(script_counter(s, ENG_HOST_REFUSED), 12);
	cr_assert(host_asks("2001:db8:0:2::1"));
	cr_assert(host_asks("10.0.0.7"));
	cr_assert(host_asks("10.0.0.8"));
	end();
}

Test(engine_share, the_number_of_a_host_connection_is_its_class)
{
	struct kit k;

	begin(hosts);
	k = kit_of(&hand[0]);
	make_ud(&hand[0], &k);
	cr_assert(host_asks_as("10.0.0.7", 46 | 5 << 6, 46 | 5 << 6));
	cr_assert_eq(script_last(s, ENG_CE_QP_START)->qp->rd.qpn, 46 | 5 << 6);
	cr_assert(host_asks_as("10.0.0.7", 511, 511));
	cr_assert_eq(s->control->nhosts, 2, "each class has a connection of its own");
	cr_assert_not(host_asks_as("10.0.0.7", 64 << 9, 64 << 9), "there is no such stage");
	cr_assert_not(host_asks_as("10.0.0.7", 0xffffff, 0xffffff));
	cr_assert_not(host_asks_as("10.0.0.7", 0, 46), "the two sides differ");
	cr_assert_not(host_asks_as("10.0.0.7", 46, 0));
	cr_assert_eq(s->control->nhosts, 2);
	end();
}

Test(engine_share, a_host_connection_has_the_stage_of_its_number)
{
	struct kit k;

	begin(hosts);
	k = kit_of(&hand[0]);
	make_ud(&hand[0], &k);
	for (uint32_t n = 0; n < ENG_MAX_STAGES; n += 9) {
		cr_assert(host_asks_as("10.0.0.7", 46 | n << 9, 46 | n << 9));
		cr_assert_eq(script_last(s, ENG_CE_QP_START)->stage, n % SCRIPT_STAGES);
		cr_assert_eq(script_last(s, ENG_CE_QP_START)->qp->rd.qpn, 46 | n << 9);
	}
	end();
}

Test(engine_share, idle_host_connections_end_early_when_few_are_free)
{
	struct sk_share *share;
	struct kit k;
	char addr[64];
	unsigned n;

	begin(hosts);
	k = kit_of(&hand[0]);
	make_ud(&hand[0], &k);
	share = &s->control->share[CTL_POOL_HOST];
	for (n = 0; n < 64; n++) {
		snprintf(addr, sizeof(addr), "10.1.0.%u", n + 1);
		if (!host_asks(addr))
			break;
	}
	/* The minimums of two users remain. */
	cr_assert_eq(n, share->size - 2 * share->minimum);
	/* An address handle of a client gets its host connection nevertheless. */
	cr_assert_geq(create(&hand[2], &(struct kit){.pd = hand_pd(&hand[2])}, &pools[8],
			      &(struct shm_msg){0}),
		0);
	cr_assert_eq(share->used[2], 1);
	for (struct ctl_host *h = TAILQ_FIRST(&s->control->hosts); h != NULL;
		h = TAILQ_NEXT(h, all))
		if (h->refs == 0)
			h->conn.state = CM_ESTABLISHED;
	for (unsigned i = 0; i < 4; i++) {
		s->now += 1000ull * 1000 * 1000;
		script_turns(s, 20);
	}
	cr_assert_lt(share->used[0], n, "no idle host connection has ended");
	cr_assert(host_asks("10.2.0.1"));
	end();
}

/* The host connection that an address handle needs is the user's until no handle uses it. */
Test(engine_share, a_user_pays_for_the_hosts_of_its_address_handles)
{
	struct sk_share *share;
	struct kit kit[CLIENTS];
	struct shm_msg m;
	int64_t ah, other;

	begin(hosts);
	share = &s->control->share[CTL_POOL_HOST];
	for (unsigned n = 0; n < CLIENTS; n++)
		kit[n] = kit_of(&hand[n]);
	make_ud(&hand[0], &kit[0]);
	ah = create(&hand[0], &kit[0], &pools[8], &m);
	make_ud(&hand[1], &kit[1]); /* takes the other stage: `other` is on that of `ah` again */
	other = create(&hand[2], &kit[2], &pools[8], &m);
	cr_assert_geq(ah, 0);
	cr_assert_geq(other, 0);
	cr_assert_eq(share->used[1], 1);
	cr_assert_eq(share->used[2], 0);
	cr_assert_eq(hand_destroy(&hand[0], SHM_AH_DESTROY, (uint32_t)ah), 0);
	cr_assert_eq(share->used[1], 1, "the other user's handle still uses it");
	cr_assert_eq(hand_destroy(&hand[2], SHM_AH_DESTROY, (uint32_t)other), 0);
	cr_assert_eq(share->used[1], 0);
	cr_assert_eq(share->used[0], 1);
	end();
}

/* ---- XRC ---- */

static void
many_handles(struct eng_config *cfg)
{
	cfg->falcon.enabled = true;
	cfg->limits.qps = 1024;
	cfg->limits.client_qps = 512;
}

/* An event of a receive QP goes to all that have opened it, in one turn. */
Test(engine_share, a_receive_qp_has_a_bounded_number_of_openers)
{
	struct shm_msg m, open;
	struct kit k;
	unsigned n;

	begin(many_handles);
	k = kit_of(&hand[0]);
	m = (struct shm_msg){.body.qp = {.type = SHM_XRC_RECV,
				     .transport = SHM_FALCON,
				     .xrcd = k.xrcd,
				     .srq = SHM_NONE}};
	cr_assert_eq(hand_do(&hand[0], &m, SHM_QP_CREATE), 0, "%s", m.body.text);
	for (n = 0; n < 512; n++) {
		open = (struct shm_msg){.body.qp = {.xrcd = k.xrcd, .qpn = m.body.qp.qpn}};
		if (hand_do(&hand[0], &open, SHM_QP_OPEN) < 0)
			break;
	}
	cr_assert_eq(n, 256);
	cr_assert_eq(open.status, -ENOSPC);
	/* A closed handle makes room. */
	cr_assert_eq(hand_destroy(&hand[0], SHM_QP_DESTROY, m.body.qp.qp + 1), 0);
	open = (struct shm_msg){.body.qp = {.xrcd = k.xrcd, .qpn = m.body.qp.qpn}};
	cr_assert_eq(hand_do(&hand[0], &open, SHM_QP_OPEN), 0, "%s", open.body.text);
	/* No other number finds it. */
	open = (struct shm_msg){.body.qp = {.xrcd = k.xrcd, .qpn = m.body.qp.qpn + 1}};
	cr_assert_eq(hand_do(&hand[0], &open, SHM_QP_OPEN), -ENOENT);
	end();
}
