/* SPDX-License-Identifier: BSD-3-Clause */
/* The scripted stages, and the client that writes its mailbox itself. */
#include "../../../lib/engine/control/core/core.h"
#include "script.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <rte_rcu_qsbr.h>
#include <rte_ring.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../../../lib/engine/common/objects.h"
#include "../../../lib/engine/control/cm/cm.h"
#include "../../../lib/shm/shm_ring.h"

#define PATIENCE (200 + 20 * CTL_REFUSED_TURNS) /* turns within which every answer comes */

static struct rte_ring *
make_ring(const char *name)
{
	struct rte_ring *r = aligned_alloc(64, (size_t)rte_ring_get_memsize(ENG_CTL_RING));

	cr_assert_eq(rte_ring_init(r, name, ENG_CTL_RING, RING_F_SP_ENQ | RING_F_SC_DEQ), 0);
	return r;
}

static void
defaults(struct eng_config *cfg)
{
	eng_config_default(cfg);
	cfg->ntransports = SCRIPT_TRANSPORTS;
	cfg->nstages = SCRIPT_STAGES;
	cfg->nports = cfg->nifs = 1;
	cfg->ports[0].mtu = 1500;
	sk_addr_parse("10.0.0.1", &cfg->ifs[0].addr);
	cfg->limits = (struct eng_limits){.clients = SCRIPT_CLIENTS,
		.qps = 64,
		.cqs = 64,
		.mrs = 64,
		.mws = 8,
		.pds = 64,
		.srqs = 16,
		.listeners = 16,
		.conns = 64,
		.client_qps = 32,
		.client_cqs = 32,
		.client_mrs = 32,
		.client_mws = 4,
		.client_regions = 5,
		.client_home_bytes = SCRIPT_HOME,
		.client_mem_bytes = 64ull << 20,
		.sq_depth = 256,
		.rq_depth = 256,
		.cq_depth = 1024,
		.ird = 32,
		.ord = 32};
}

/* Does the same as eng_doorbell_watch() and eng_doorbell_unwatch(). */
static int
script_doorbell(void *arg, int fd, bool watch)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
	const struct script *s = arg;

	return epoll_ctl(s->doorbells, watch ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, fd, &ev) == 0
		       ? 0
		       : -errno;
}

struct script *
script_new(void (*tweak)(struct eng_config *cfg))
{
	static const struct sk_key key = {{1, 2}};
	struct script *s = calloc(1, sizeof(*s));
	struct eng_control_args a = {.cfg = &s->cfg, .doorbell = script_doorbell, .wake_arg = s};
	char err[256];

	s->doorbells = epoll_create1(EPOLL_CLOEXEC);
	cr_assert_geq(s->doorbells, 0);
	s->hold = s->fail = -1;
	memset(s->attached, 0xff, sizeof(s->attached));
	defaults(&s->cfg);
	if (tweak != NULL)
		tweak(&s->cfg);
	for (unsigned i = 0; i < SCRIPT_TRANSPORTS + SCRIPT_STAGES; i++) {
		s->to[i] = make_ring("to");
		s->from[i] = make_ring("from");
	}
	for (unsigned i = 0; i < SCRIPT_TRANSPORTS; i++) {
		a.to_transport[i] = s->to[i];
		a.from_transport[i] = s->from[i];
	}
	for (unsigned i = 0; i < SCRIPT_STAGES; i++) {
		a.to_stage[i] = s->to[SCRIPT_TRANSPORTS + i];
		a.from_stage[i] = s->from[SCRIPT_TRANSPORTS + i];
	}
	s->rcu = aligned_alloc(64, (rte_rcu_qsbr_get_memsize(1) + 63) & ~(size_t)63);
	cr_assert_eq(rte_rcu_qsbr_init(s->rcu, 1), 0);
	rte_rcu_qsbr_thread_register(s->rcu, 0);
	rte_rcu_qsbr_thread_online(s->rcu, 0);
	s->mrs = rd_mr_table_create(128, &key);
	a.rcu = s->rcu;
	a.mrs = s->mrs;
	s->control = eng_control_create(&a, err, sizeof(err));
	cr_assert_not_null(s->control, "%s", err);
	return s;
}

/* Ends the attempts of host connections, as the other stages do in the end. */
static void
end_hosts(struct script *s)
{
	struct ctl_host *h;

	TAILQ_FOREACH (h, &s->control->hosts, all) {
		struct eng_ctl *m;

		if (h->conn.state == CM_OPENING) {
			m = script_say(s, ENG_TC_FAILED);
			m->transport = h->conn.transport;
			m->conn = h->conn.conn;
			m->cookie = cm_conn_cookie(&h->conn);
		} else if (h->conn.state == CM_WAIT_PEER) {
			m = script_say(s, ENG_EC_DISCONNECTED);
			m->stage = h->qp.stage;
			m->qp = &h->qp;
		} else {
			continue;
		}
		script_send(s, m);
	}
	script_turns(s, PATIENCE);
}

/* Detaches the clients that are still attached, and waits until nothing is left of them. */
static void
detach_all(struct script *s)
{
	s->reader_busy = false;
	s->fail = -1;
	script_release(s, 0);
	for (int i = 0; i < SCRIPT_IDS; i++)
		if (s->attached[i] >= 0 && !eng_control_client_gone(s->control, s->attached[i]))
			cr_assert_eq(eng_control_detach(s->control, s->attached[i]), 0);
	for (unsigned i = 0; i < PATIENCE && s->control->totals.clients > 0; i++)
		script_turn(s);
	cr_assert_eq(s->control->totals.clients, 0, "a client is not destroyed");
	/* Host connections end when no datagram QP is left, retired objects at the next quiet
	 * point. */
	script_turns(s, PATIENCE);
	end_hosts(s);
}

/* Asserts the rule of all pools: every object gives its unit back, and every message is free. */
static void
assert_shares(const struct script *s)
{
	const struct eng_control *c = s->control;

	for (unsigned i = 0; i < CTL_POOLS; i++)
		cr_assert_eq(
			c->share[i].held, 0, "%u units of pool %u are held", c->share[i].held, i);
	cr_assert_eq(c->nspare, CTL_POOL, "%u messages are not free", CTL_POOL - c->nspare);
	cr_assert(TAILQ_EMPTY(&c->ops));
	cr_assert(TAILQ_EMPTY(&c->rung));
	cr_assert_eq(c->conns.used, 0);
	cr_assert_eq(c->listeners.used, 0);
}

void
script_free(struct script *s)
{
	detach_all(s);
	assert_shares(s);
	script_destroy(s);
}

void
script_destroy(struct script *s)
{
	eng_control_destroy(s->control);
	for (unsigned i = 0; i < SCRIPT_TRANSPORTS + SCRIPT_STAGES; i++) {
		free(s->to[i]);
		free(s->from[i]);
	}
	rd_mr_table_destroy(s->mrs);
	free(s->rcu);
	close(s->doorbells);
	free(s);
}

/* ---- Stages ---- */

static struct rte_ring *
ring_back(struct script *s, const struct eng_ctl *m)
{
	bool transport = m->type < ENG_CE_CLIENT_ADD ||
			 (m->type >= ENG_TC_REQUEST && m->type < ENG_EC_MAILBOX);

	return s->from[transport ? m->transport : SCRIPT_TRANSPORTS + m->stage];
}

static void
answer(struct script *s, struct eng_ctl *m, int status)
{
	m->status = status;
	if ((m->type == ENG_CT_CONNECT || m->type == ENG_CT_LOOKUP) && status == 0)
		m->conn = s->next_conn++;
	if (m->type == ENG_CE_QP_ADD)
		m->qp_index = s->next_index++;
	if (m->type == ENG_CE_QP_QUERY)
		m->qp_info.state = RD_QP_RTS;
	cr_assert_eq(rte_ring_enqueue(ring_back(s, m), m), 0, "a ring was full");
}

static void
command(struct script *s, struct eng_ctl *m)
{
	if (s->nlog < SCRIPT_LOG)
		s->log[s->nlog++] = *m;
	if (m->type == s->hold) {
		cr_assert_lt(s->nheld, 64);
		s->held[s->nheld++] = m;
		return;
	}
	answer(s, m, m->type == s->fail ? s->fail_status : 0);
}

void
script_turn(struct script *s)
{
	void *m;

	eng_control_poll(s->control, s->now);
	for (unsigned i = 0; i < SCRIPT_TRANSPORTS + SCRIPT_STAGES; i++) {
		while (rte_ring_dequeue(s->to[i], &m) == 0) {
			struct eng_ctl *c = m;

			if (c->type < ENG_TC_REQUEST) {
				command(s, c);
				continue;
			}
			cr_assert(s->out[c - s->unasked], "a message came back twice");
			s->out[c - s->unasked] = false;
		}
	}
	if (!s->reader_busy)
		rte_rcu_qsbr_quiescent(s->rcu, 0);
	s->now += 1000;
}

void
script_turns(struct script *s, unsigned n)
{
	while (n--)
		script_turn(s);
}

const struct eng_ctl *
script_last(const struct script *s, enum eng_ctl_type type)
{
	for (unsigned i = s->nlog; i-- > 0;)
		if (s->log[i].type == type)
			return &s->log[i];
	return NULL;
}

unsigned
script_count(const struct script *s, enum eng_ctl_type type)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->nlog; i++)
		n += s->log[i].type == type;
	return n;
}

void
script_release(struct script *s, int status)
{
	s->hold = -1;
	for (unsigned i = 0; i < s->nheld; i++)
		answer(s, s->held[i], status);
	s->nheld = 0;
}

struct eng_ctl *
script_say(struct script *s, enum eng_ctl_type type)
{
	for (unsigned i = 0; i < SCRIPT_UNASKED; i++) {
		if (s->out[i])
			continue;
		memset(&s->unasked[i], 0, sizeof(s->unasked[i]));
		s->unasked[i].type = (uint16_t)type;
		return &s->unasked[i];
	}
	cr_assert_fail("all messages are out");
	return NULL;
}

void
script_send(struct script *s, struct eng_ctl *m)
{
	s->out[m - s->unasked] = true;
	cr_assert_eq(rte_ring_enqueue(ring_back(s, m), m), 0);
}

unsigned
script_out(const struct script *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < SCRIPT_UNASKED; i++)
		n += s->out[i];
	return n;
}

uint64_t
script_counter(const struct script *s, enum eng_reason reason)
{
	return eng_control_counters(s->control)[reason];
}

/* ---- A client that writes its mailbox itself ---- */

void
hand_attach_as(struct hand *c, struct script *s, uint16_t user)
{
	char name[SHM_NAME_MAX];

	memset(c, 0, sizeof(*c));
	snprintf(name, sizeof(name), "hand%u", user);
	c->s = s;
	c->home = aligned_alloc(4096, SCRIPT_HOME);
	memset(c->home, 0, SCRIPT_HOME);
	c->number = eng_control_attach_flat(s->control, name, c->home, SCRIPT_HOME, SCRIPT_MEM, -1);
	cr_assert_geq(c->number, 0, "%d", c->number);
	cr_assert_lt(s->nattached, SCRIPT_IDS);
	s->attached[s->nattached++] = c->number;
	memcpy(&c->h, c->home, sizeof(c->h));
	cr_assert_eq(c->h.magic, SHM_MAGIC);
	shm_prod_init(&c->cmd, c->home, &c->h.cmd);
	shm_take_init(&c->evt, c->home, &c->h.evt);
	script_turns(s, 4);
	/* Users have numbers from 1 on, in the order in which they come. */
	cr_assert(user == 0 || hand_client(c)->eng.user == user);
}

void
hand_attach(struct hand *c, struct script *s)
{
	hand_attach_as(c, s, 0);
}

void
hand_free(struct hand *c)
{
	free(c->home);
}

struct ctl_client *
hand_client(const struct hand *c)
{
	struct ctl_client *cl;

	TAILQ_FOREACH (cl, &c->s->control->all, all)
		if (cl->eng.home == c->home)
			return cl;
	cr_assert_fail("the client is not attached");
	return NULL;
}

static void
ring_mailbox(struct hand *c)
{
	struct eng_ctl *m = script_say(c->s, ENG_EC_MAILBOX);

	m->client = &hand_client(c)->eng;
	script_send(c->s, m);
}

void
hand_send(struct hand *c, struct shm_msg *m, enum shm_op op)
{
	cr_assert(shm_prod_room(&c->cmd));
	m->op = (uint16_t)op;
	m->tag = ++c->tag;
	memcpy((uint8_t *)shm_prod_entry(&c->cmd) + 4, (uint8_t *)m + 4, sizeof(*m) - 4);
	shm_prod_push(&c->cmd);
	ring_mailbox(c);
}

bool
hand_next(struct hand *c, struct shm_msg *m)
{
	for (unsigned i = 0; i < PATIENCE; i++) {
		const void *e = shm_take_peek(&c->evt);

		if (e != NULL) {
			memcpy(m, e, sizeof(*m));
			shm_take_pop(&c->evt);
			shm_take_publish(&c->evt);
			return true;
		}
		script_turn(c->s);
	}
	return false;
}

int
hand_do(struct hand *c, struct shm_msg *m, enum shm_op op)
{
	hand_send(c, m, op);
	cr_assert(hand_next(c, m), "no reply to command %u", op);
	cr_assert_eq(m->op, op);
	cr_assert_eq(m->tag, c->tag);
	if (m->status < 0)
		cr_assert_gt(strlen(m->body.text), 5, "no sentence for %d", m->status);
	return m->status;
}

uint32_t
hand_pd(struct hand *c)
{
	struct shm_msg m = {0};

	cr_assert_eq(hand_do(c, &m, SHM_PD_CREATE), 0);
	return m.body.handle;
}

uint32_t
hand_cq(struct hand *c)
{
	struct shm_msg m = {.body.cq.depth = 16};

	cr_assert_eq(hand_do(c, &m, SHM_CQ_CREATE), 0);
	return m.body.cq.cq;
}

struct shm_msg
hand_qp(struct hand *c, uint32_t pd, uint32_t cq)
{
	struct shm_msg m = {.body.qp = {.pd = pd,
				    .send_cq = cq,
				    .recv_cq = cq,
				    .srq = SHM_NONE,
				    .sq_depth = 16,
				    .rq_depth = 16,
				    .max_send_sge = 2,
				    .max_recv_sge = 2,
				    .max_inline = 64}};

	cr_assert_eq(hand_do(c, &m, SHM_QP_CREATE), 0, "%s", m.body.text);
	return m;
}

int
hand_destroy(struct hand *c, enum shm_op op, uint32_t handle)
{
	struct shm_msg m = {.body.handle = handle};

	return hand_do(c, &m, op);
}

void
script_falcon(struct eng_config *cfg)
{
	cfg->falcon.enabled = true;
	cfg->falcon.psps = ROFX_PSP(PSP_NO_CRYPTO) | ROFX_PSP_KEYED;
}

uint32_t
hand_falcon_qp(struct hand *c)
{
	uint32_t pd = hand_pd(c), cq = hand_cq(c);
	struct shm_msg m = {.body.qp = {.pd = pd,
				    .send_cq = cq,
				    .recv_cq = cq,
				    .srq = SHM_NONE,
				    .transport = SHM_FALCON,
				    .type = SHM_RC,
				    .sq_depth = 4,
				    .rq_depth = 4,
				    .max_send_sge = 1,
				    .max_recv_sge = 1,
				    .xrcd = SHM_NONE}};

	cr_assert_eq(hand_do(c, &m, SHM_QP_CREATE), 0, "%s", m.body.text);
	return m.body.qp.qp;
}

int
hand_move(struct hand *c, uint32_t qp, uint8_t state)
{
	struct shm_msg m = {.body.move = {.qp = qp,
				    .state = state,
				    .remote_qpn = 77,
				    .modes.psp = ROFX_PSP(PSP_NO_CRYPTO)}};

	cr_assert_eq(sk_addr_parse(HAND_PEER, &m.body.move.remote), 0);
	return hand_do(c, &m, SHM_QP_MODIFY);
}
