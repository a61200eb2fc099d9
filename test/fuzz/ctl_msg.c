/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client's commands, and messages of transport and engine stages in between, in any order and
 * with any values. The stages in this program accept everything. Afterwards the client leaves, and
 * none of its objects may remain.
 *
 * Input: steps of [kind][n][n patches of (word, value: 4 bytes)]. The patches change a valid
 * message, so that wrong values are mixed with correct ones.
 */
#include <rte_rcu_qsbr.h>
#include <rte_ring.h>

#include "../../lib/base/log.h"
#include "../../lib/engine/control/cm/cm.h"
#include "../../lib/engine/control/control.h"
#include "../../lib/shm/shm_ring.h"
#include "fuzz.h"

#define HOME_SIZE (1u << 20)
#define MEM_SIZE  (64u << 10)
#define UNASKED   32
#define STEPS     200

static struct eng_config cfg;
static struct eng_control *control;
/* Rings to and from the transport stage and the engine stage. */
static struct rte_ring *to[2], *from[2];
static struct rte_rcu_qsbr *rcu;
static struct rd_mr_table *mrs;
static struct eng_ctl unasked[UNASKED];
static bool out[UNASKED];
static uint64_t now;
static uint32_t conns;
static struct eng_ctl last_open, last_add, last_listen; /* messages to which notices refer */
static struct eng_qp *live[64];

static struct rte_ring *
make_ring(void)
{
	struct rte_ring *r = aligned_alloc(64, (size_t)rte_ring_get_memsize(ENG_CTL_RING));

	CLAIM(r && rte_ring_init(r, "r", ENG_CTL_RING, RING_F_SP_ENQ | RING_F_SC_DEQ) == 0);
	return r;
}

static void
start(void)
{
	static const struct sk_key key = {{3, 4}};
	struct eng_control_args a = {.cfg = &cfg};
	char err[256];

	sk_log_set(SK_LOG_ERR, NULL);
	cfg.ntransports = cfg.nstages = cfg.nports = cfg.nifs = 1;
	cfg.mpa_revision = 2;
	cfg.port_min = 50000;
	cfg.port_max = 50100;
	sk_addr_parse("10.0.0.1", &cfg.ifs[0].addr);
	cfg.limits = (struct eng_limits){.clients = 2,
		.qps = 16,
		.cqs = 16,
		.mrs = 16,
		.pds = 8,
		.srqs = 8,
		.listeners = 8,
		.client_qps = 12,
		.client_cqs = 12,
		.client_mrs = 12,
		.client_regions = 4,
		.sq_depth = 64,
		.rq_depth = 64,
		.cq_depth = 64,
		.ird = 8,
		.ord = 8};
	for (int i = 0; i < 2; i++) {
		to[i] = make_ring();
		from[i] = make_ring();
	}
	rcu = aligned_alloc(64, (rte_rcu_qsbr_get_memsize(1) + 63) & ~(size_t)63);
	CLAIM(rcu && rte_rcu_qsbr_init(rcu, 1) == 0);
	mrs = rd_mr_table_create(16, &key);
	a.to_transport[0] = to[0];
	a.from_transport[0] = from[0];
	a.to_stage[0] = to[1];
	a.from_stage[0] = from[1];
	a.rcu = rcu;
	a.mrs = mrs;
	control = eng_control_create(&a, err, sizeof(err));
	CLAIM(control);
}

static void
note(const struct eng_ctl *m)
{
	switch (m->type) {
	case ENG_CT_CONNECT:
	case ENG_CT_ACCEPT:
		last_open = *m;
		break;
	case ENG_CT_LISTEN:
		last_listen = *m;
		break;
	case ENG_CE_CLIENT_ADD:
		last_add = *m;
		break;
	case ENG_CE_QP_ADD:
		CLAIM(m->qp->handle < 64);
		live[m->qp->handle] = m->qp;
		break;
	case ENG_CE_QP_DEL:
		live[m->qp->handle] = NULL;
		break;
	}
}

static void
turn(void)
{
	void *p;

	now += 1000000;
	eng_control_poll(control, now);
	for (int i = 0; i < 2; i++) {
		while (rte_ring_dequeue(to[i], &p) == 0) {
			struct eng_ctl *m = p;

			if (m->type >= ENG_TC_REQUEST) {
				CLAIM(out[m - unasked]);
				out[m - unasked] = false;
				continue;
			}
			if (m->type == ENG_CT_CONNECT)
				m->conn = conns++;
			m->status = 0;
			note(m);
			CLAIM(rte_ring_enqueue(from[i], m) == 0);
		}
	}
}

static struct eng_ctl *
say(enum eng_ctl_type type)
{
	for (int i = 0; i < UNASKED; i++) {
		if (out[i])
			continue;
		out[i] = true;
		memset(&unasked[i], 0, sizeof(unasked[i]));
		unasked[i].type = (uint16_t)type;
		return &unasked[i];
	}
	return NULL;
}

static void
from_transport(unsigned kind)
{
	static const enum eng_ctl_type types[] = {
		ENG_TC_REQUEST, ENG_TC_ESTABLISHED, ENG_TC_REJECTED, ENG_TC_FAILED};
	struct eng_ctl *m = say(types[kind % 4]);

	if (!m)
		return;
	m->conn = m->type == ENG_TC_REQUEST ? conns++ : last_open.conn;
	m->cookie = m->type == ENG_TC_REQUEST ? 0 : last_open.cookie;
	if (m->type != ENG_TC_FAILED) {
		m->peer.listener = last_listen.listen.number;
		m->peer.outcome.mpa.revision = 2;
	}
	m->private_len = 4;
	CLAIM(rte_ring_enqueue(from[0], m) == 0);
}

static void
from_stage(unsigned kind, uint8_t qp)
{
	struct eng_ctl *m;

	if (!live[qp % 64])
		return;
	m = say(kind % 2 ? ENG_EC_DISCONNECTED : ENG_EC_QP_FATAL);
	if (!m)
		return;
	m->qp = live[qp % 64];
	m->client = last_add.client;
	CLAIM(rte_ring_enqueue(from[1], m) == 0);
}

static void
sensible(struct shm_msg *m, const struct shm_header *h)
{
	switch (m->op) {
	case SHM_MR_CREATE:
		m->body.mr = (struct shm_mr){.access = 1,
			.len = 4096,
			.nextents = 1,
			.extents = {{.offset = h->mem, .len = 4096}}};
		break;
	case SHM_MW_CREATE:
		m->body.mw.type = RD_MW_TYPE_2;
		break;
	case SHM_CQ_CREATE:
		m->body.cq.depth = 8;
		break;
	case SHM_CQ_RESIZE:
		m->body.cq.depth = 16;
		break;
	case SHM_SRQ_CREATE:
		m->body.srq.depth = 8;
		m->body.srq.xrcd = m->body.srq.cq = SHM_NONE;
		break;
	case SHM_QP_CREATE:
		m->body.qp.srq = SHM_NONE;
		m->body.qp.sq_depth = m->body.qp.rq_depth = 4;
		break;
	case SHM_QP_MODIFY:
		m->body.move.state = RD_QP_ERR;
		break;
	case SHM_CONNECT:
		sk_addr_parse("10.0.0.2", &m->body.cm.remote);
		m->body.cm.rport = 80;
		break;
	}
}

/* Returns the bytes consumed. */
static size_t
one_command(struct shm_prod *cmd, const struct shm_header *h, const uint8_t *p, size_t len)
{
	struct shm_msg m = {.op = p[0]};
	size_t at = 2;

	sensible(&m, h);
	for (unsigned i = 0; i < p[1] % 8u && len - at >= 5; i++, at += 5)
		memcpy(m.body.raw + p[at] % 248u * 4, p + at + 1, 4);
	if (shm_prod_room(cmd)) {
		memcpy((uint8_t *)shm_prod_entry(cmd) + 4, (uint8_t *)&m + 4, sizeof(m) - 4);
		shm_prod_push(cmd);
	}
	return at;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t home[HOME_SIZE] __attribute__((aligned(4096)));
	struct eng_totals t = {0};
	struct shm_header h;
	struct shm_prod cmd;
	struct shm_take evt;
	size_t at = 0;
	int client;

	if (!control)
		start();
	memset(home, 0, sizeof(home));
	client = eng_control_attach_flat(control, "fuzz", home, HOME_SIZE, MEM_SIZE, -1);
	CLAIM(client >= 0);
	memcpy(&h, home, sizeof(h));
	shm_prod_init(&cmd, home, &h.cmd);
	shm_take_init(&evt, home, &h.evt);
	turn();
	for (unsigned step = 0; step < STEPS && size - at >= 2; step++) {
		if (data[at] < 0xe0) {
			at += one_command(&cmd, &h, data + at, size - at);
		} else {
			if (data[at] < 0xf0)
				from_transport(data[at]);
			else
				from_stage(data[at], data[at + 1]);
			at += 2;
		}
		now += 10000000; /* the next poll of the mailbox is due */
		turn();
		while (data[0] & 1 && shm_take_peek(&evt)) {
			shm_take_pop(&evt);
			shm_take_publish(&evt);
		}
	}
	CLAIM(eng_control_detach(control, client) == 0);
	for (unsigned i = 0; i < 400 && !eng_control_client_gone(control, client); i++)
		turn();
	CLAIM(eng_control_client_gone(control, client));
	turn();
	eng_control_totals(control, &t);
	CLAIM(t.clients + t.qps + t.cqs + t.mrs + t.mws + t.pds + t.srqs + t.listeners == 0);
	for (int i = 0; i < UNASKED; i++)
		CLAIM(!out[i]);
	memset(live, 0, sizeof(live));
	return 0;
}
