/* SPDX-License-Identifier: BSD-3-Clause */
/* See stage_rig.h. */
#include "stage_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <criterion/criterion.h>
#include <rte_mempool.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "../../../lib/engine/common/pages.h"

#define HOME_SIZE 65536
/* A client with its part of one stage, and the offset of that part. */
#define CLIENT_STAGE ((sizeof(struct eng_client) + 63) & ~(size_t)63)
#define CLIENT_BYTES (CLIENT_STAGE + sizeof(struct eng_client_stage))

static void
free_rings(struct eng_rings *rings)
{
	rte_ring_free(rings->to_stage[0][0]);
	rte_ring_free(rings->to_transport[0][0]);
	free(rings->to_stage[0]);
	free(rings->to_transport[0]);
	rte_ring_free(rings->control_stage[0]);
	rte_ring_free(rings->stage_control[0]);
}

static void
no_wake(void *arg, unsigned stage)
{
}

void
stage_rig_start(struct stage_rig *r, void (*tweak)(struct eng_config *cfg))
{
	static unsigned id = 1000;
	char err[128];

	memset(r, 0, sizeof(*r));
	r->e = aligned_alloc(64, (sizeof(*r->e) + 63) & ~(size_t)63);
	cr_assert_not_null(r->e);
	memset(r->e, 0, sizeof(*r->e));
	r->e->bounds = eng_bounds;
	eng_config_default(&r->e->cfg);
	r->e->id = id++;
	r->e->cfg.nports = 1;
	r->e->cfg.ports[0].mtu = 1500;
	r->e->cfg.limits.qps = 2048;
	r->e->cfg.limits.tx_mbufs = RIG_STORE;
	r->e->cfg.socket_id = SOCKET_ID_ANY;
	if (tweak != NULL)
		tweak(&r->e->cfg);
	r->e->rings.to_stage[0] = calloc(1, sizeof(*r->e->rings.to_stage[0]));
	r->e->rings.to_transport[0] = calloc(1, sizeof(*r->e->rings.to_transport[0]));
	cr_assert(r->e->rings.to_stage[0] != NULL && r->e->rings.to_transport[0] != NULL);
	r->e->rings.to_stage[0][0] =
		eng_ring_create(r->e, "a", 0, 0, sizeof(struct eng_dmsg), ENG_DATA_RING);
	r->e->rings.to_transport[0][0] =
		eng_ring_create(r->e, "b", 0, 0, sizeof(struct eng_dmsg), ENG_DATA_RING);
	r->e->rings.control_stage[0] =
		eng_ring_create(r->e, "c", 0, 0, sizeof(void *), ENG_CTL_RING);
	r->e->rings.stage_control[0] =
		eng_ring_create(r->e, "d", 0, 0, sizeof(void *), ENG_CTL_RING);
	r->e->pages = eng_pages_create(r->e, 1, r->e->cfg.limits.qps, no_wake, NULL);
	cr_assert_not_null(r->e->pages);
	r->s = eng_stage_create(r->e, 0, err, sizeof(err));
	cr_assert_not_null(r->s);
	r->now = 1000000000;
	stage_rig_turn(r, 1);
}

void
stage_rig_end(struct stage_rig *r)
{
	cr_assert(rte_mempool_full(r->s->store), "%u mbufs are not back",
		rte_mempool_in_use_count(r->s->store));
	eng_stage_destroy(r->s);
	eng_pages_destroy(r->e->pages);
	free_rings(&r->e->rings);
	free(r->e);
	cr_assert_eq(eng_pools_waiting(), 0);
}

void
stage_rig_turn(struct stage_rig *r, uint64_t ns)
{
	r->now += ns;
	eng_stage_poll(r->s, r->now, r->unsent);
}

struct eng_ctl *
stage_rig_notice(struct stage_rig *r)
{
	void *m;

	return rte_ring_sc_dequeue(r->e->rings.stage_control[0], &m) == 0 ? m : NULL;
}

void
stage_rig_return(struct stage_rig *r, struct eng_ctl *m)
{
	cr_assert_eq(rte_ring_sp_enqueue(r->e->rings.control_stage[0], m), 0);
}

void
stage_rig_command(
	struct stage_rig *r, enum eng_ctl_type type, struct eng_client *client, void *object)
{
	r->command = (struct eng_ctl){.type = (uint16_t)type, .client = client, .status = 1};
	r->command.object.object = object;
	stage_rig_return(r, &r->command);
	/* Notices that were returned may be in front of the command. */
	for (unsigned i = 0; i < ENG_CTL_RING / ENG_BURST && r->command.status == 1; i++)
		stage_rig_turn(r, 0);
	cr_assert_eq(stage_rig_notice(r), &r->command);
	cr_assert_eq(r->command.status, 0);
}

bool
stage_rig_message(struct stage_rig *r, struct eng_dmsg *m)
{
	return rte_ring_sc_dequeue_elem(r->e->rings.to_transport[0][0], m, sizeof(*m)) == 0;
}

/* Adds a client, for which c->c has room. */
static void
client_add(
	struct stage_rig *r, struct stage_client *c, uint16_t user, const struct eng_rates *rates)
{
	const struct shm_ring_at events = {.entries = 4096,
		.cons = 64,
		.stride = sizeof(struct shm_cq_event),
		.log2_count = 6};
	const struct shm_ring_at doorbells = {.entries = 8192,
		.cons = 128,
		.stride = sizeof(struct shm_doorbell),
		.log2_count = 10};

	c->home = aligned_alloc(4096, HOME_SIZE);
	cr_assert(c->c != NULL && c->home != NULL);
	memset(c->c, 0, CLIENT_BYTES);
	c->c->stage = (struct eng_client_stage *)(void *)((uint8_t *)c->c + CLIENT_STAGE);
	memset(c->home, 0, HOME_SIZE);
	c->c->user = user;
	c->c->wake_fd = -1;
	c->c->user_rates = r->user_rates;
	if (rates != NULL)
		c->c->rates = *rates;
	c->c->stage[0].client = c->c;
	shm_take_init(&c->c->stage[0].doorbell, c->home, &doorbells);
	shm_prod_init(&c->c->stage[0].event, c->home, &events);
	shm_prod_init(&c->doorbell, c->home, &doorbells);
	shm_take_init(&c->event, c->home, &events);
	stage_rig_command(r, ENG_CE_CLIENT_ADD, c->c, NULL);
}

void
stage_client_add(
	struct stage_rig *r, struct stage_client *c, uint16_t user, const struct eng_rates *rates)
{
	memset(c, 0, sizeof(*c));
	c->c = aligned_alloc(64, CLIENT_BYTES);
	client_add(r, c, user, rates);
}

void
stage_client_add_hidden(
	struct stage_rig *r, struct stage_client *c, uint16_t user, struct hidden *h)
{
	memset(c, 0, sizeof(*c));
	c->hidden = h;
	c->c = hidden_alloc(h, CLIENT_BYTES);
	client_add(r, c, user, NULL);
}

void
stage_client_del(struct stage_rig *r, struct stage_client *c)
{
	stage_rig_command(r, ENG_CE_CLIENT_DEL, c->c, NULL);
	if (c->hidden != NULL)
		hidden_free(c->hidden);
	else
		free(c->c);
	free(c->home);
}

void
stage_client_ring(struct stage_client *c, uint32_t what)
{
	struct shm_doorbell *d = shm_prod_entry(&c->doorbell);

	cr_assert(shm_prod_room(&c->doorbell) > 0);
	d->what = what;
	shm_prod_push(&c->doorbell);
}

unsigned
stage_client_events(struct stage_client *c, unsigned n)
{
	unsigned taken = 0;

	for (; taken < n && shm_take_peek(&c->event) != NULL; taken++)
		shm_take_pop(&c->event);
	shm_take_publish(&c->event);
	return taken;
}

void *
hidden_alloc(struct hidden *h, size_t bytes)
{
	h->bytes = (bytes + 4095) & ~(size_t)4095;
	h->at = mmap(NULL, h->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(h->at, MAP_FAILED);
	return h->at;
}

void
hidden_hide(const struct hidden *h, bool hide)
{
	cr_assert_eq(mprotect(h->at, h->bytes, hide ? PROT_NONE : PROT_READ | PROT_WRITE), 0);
}

void
hidden_free(struct hidden *h)
{
	munmap(h->at, h->bytes);
}

void
stage_qp_info(const struct eng_qp *qp, struct eng_work *out)
{
	*out = (struct eng_work){0};
}

bool
stage_qp_opened(const struct eng_qp *qp)
{
	return true;
}

static bool
quiet_run(struct eng_stage *s, struct eng_qp *qp)
{
	return false;
}

static void
quiet_closed(struct eng_stage *s, struct eng_qp *qp, int error)
{
}

const struct eng_qp_ops stage_qp_quiet = {
	.run = quiet_run, .closed = quiet_closed, .info = stage_qp_info, .opened = stage_qp_opened};

void
stage_qp_make(
	struct eng_qp *qp, struct stage_client *c, const struct eng_qp_ops *ops, void *control)
{
	qp->rd.state = RD_QP_RTS;
	qp->client = c->c;
	qp->payer = &c->c->stage[0];
	qp->ops = ops;
	qp->connected = true;
	qp->control = control;
}
