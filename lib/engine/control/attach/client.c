/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The attaching of a client. Any thread lays out the home region, creates the client's tables, and
 * passes the client to the control stage, which adds it to the engine stages. Until they have
 * answered, commands wait in the mailbox.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client.h"
#include "place.h"
#include "region_priv.h"
#include "../../../base/clock.h"
#include "../../common/sigbus.h"
#include "../../common/waker.h"

#define CLIENT_EVT_RING 64
#define CLIENT_HEAP_MIN 4096

int
ctl_client_layout(unsigned nstages, const struct eng_limits *l, uint64_t size, uint64_t mem_len,
	struct shm_header *out)
{
	struct shm_home home = {
		.nstages = nstages,
		.commands = CTL_CLIENT_COMMANDS,
		.events = CLIENT_EVT_RING,
		.doorbells = l->client_qps + CTL_CLIENT_COMMANDS + 1,
		.cq_events = l->client_cqs + 1,
		.mem_len = mem_len,
	};
	int rc = shm_header_lay(out, size, &home);

	return rc == 0 && out->heap_len < CLIENT_HEAP_MIN ? -ENOSPC : rc;
}

static int
client_tables_init(struct ctl_client *cl, const struct eng_limits *l)
{
	TAILQ_INIT(&cl->unplaced);
	return ctl_table_init(&cl->pds, SK_MIN(l->pds, l->client_qps)) < 0 ||
			       ctl_table_init(&cl->srqs, SK_MIN(l->srqs, l->client_qps)) < 0 ||
			       ctl_table_init(&cl->ahs, l->client_qps) < 0 ||
			       ctl_table_init(&cl->xrcds, SK_MIN(l->pds, l->client_qps)) < 0 ||
			       ctl_table_init(&cl->mrs, l->client_mrs) < 0 ||
			       ctl_table_init(&cl->mws, l->client_mws) < 0 ||
			       ctl_table_init(&cl->cqs, l->client_cqs) < 0 ||
			       ctl_table_init(&cl->qps, l->client_qps) < 0 ||
			       ctl_table_init(&cl->listeners, l->listeners) < 0 ||
			       ctl_table_init(&cl->requests, CTL_CLIENT_REQUESTS) < 0
		       ? -ENOMEM
		       : 0;
}

static void
tables_fini(struct ctl_client *cl)
{
	ctl_table_fini(&cl->pds);
	ctl_table_fini(&cl->srqs);
	ctl_table_fini(&cl->xrcds);
	ctl_table_fini(&cl->ahs);
	ctl_table_fini(&cl->mrs);
	ctl_table_fini(&cl->mws);
	ctl_table_fini(&cl->cqs);
	ctl_table_fini(&cl->qps);
	ctl_table_fini(&cl->listeners);
	ctl_table_fini(&cl->requests);
}

static int
stages_init(struct ctl_client *cl, unsigned nstages, const struct eng_limits *l,
	const struct shm_header *h)
{
	for (unsigned i = 0; i < nstages; i++) {
		struct eng_client_stage *s = &cl->eng.stage[i];

		s->client = &cl->eng;
		s->nqps = l->client_qps;
		s->qps = calloc(s->nqps, sizeof(*s->qps));
		if (s->qps == NULL)
			return -ENOMEM;
		shm_take_init(&s->doorbell, cl->eng.home, &h->doorbell[i]);
		shm_prod_init(&s->event, cl->eng.home, &h->event[i]);
	}
	return 0;
}

static int
client_init(struct eng_control *c, struct ctl_client *cl, const char *name,
	const struct client_home *home, const struct eng_limits *l, const struct shm_header *h)
{
	uint32_t pieces;

	strncpy(cl->eng.name, name, sizeof(cl->eng.name) - 1);
	cl->eng.home = home->base;
	cl->eng.header = home->base;
	cl->eng.wake_fd = home->wake_fd;
	cl->tenant = home->tenant;
	cl->pid = home->pid;
	cl->uid = home->uid;
	cl->eng.control = cl;
	cl->control = c;
	STAILQ_INIT(&cl->events);
	shm_take_init(&cl->cmd, home->base, &h->cmd);
	shm_prod_init(&cl->evt, home->base, &h->evt);
	cl->heap_at = h->heap;
	cl->mem_at = h->mem;
	cl->mem_len = h->mem_len;
	cl->region[SHM_HOME] =
		(struct eng_region){.base = home->base, .size = home->size, .fd = -1, .guard = -1};
	if (client_tables_init(cl, l) < 0 || stages_init(cl, c->cfg->nstages, l, h) < 0)
		return -ENOMEM;
	/* A CQ needs one piece more each time that it grows: there are as many as fit. */
	pieces = l->client_qps + (1 + c->cfg->nstages + CTL_CQ_MOVES) * l->client_cqs +
		 2 * cl->srqs.cap;
	return ctl_heap_init(&cl->heap, cl->eng.home + h->heap, h->heap_len, pieces);
}

/* Returns a client with room for its part of each stage, zeroed, or NULL. */
static struct ctl_client *
client_alloc(unsigned nstages)
{
	size_t own = (sizeof(struct ctl_client) + 63) & ~(size_t)63;
	size_t len = own + nstages * sizeof(struct eng_client_stage);
	struct ctl_client *cl = aligned_alloc(64, len);

	if (cl == NULL)
		return NULL;
	memset(cl, 0, len);
	cl->eng.stage = (struct eng_client_stage *)(void *)((uint8_t *)cl + own);
	return cl;
}

static void
client_fini(struct ctl_client *cl, unsigned nstages)
{
	for (unsigned i = 0; i < nstages; i++) {
		free(cl->eng.stage[i].qps);
		free(cl->eng.stage[i].ahs);
	}
	ctl_heap_fini(&cl->heap);
	tables_fini(cl);
	free(cl);
}

/* Gives the client its number and, if it has come through the socket, the unit for its home region.
 * Returns its id, or -errno. */
static int
client_place(struct eng_control *c, struct ctl_client *cl)
{
	int id = ctl_place_take(c->places, cl);

	int rc = -ENOSPC;

	if (id < 0 || cl->flat)
		return id;
	if (ctl_share_take(c, CTL_POOL_REGION, cl->eng.user)) {
		rc = eng_waker_add(c->a.waker, &cl->eng, cl->tenant, sk_clock_ns(CLOCK_MONOTONIC));
		if (rc == 0)
			return id;
		ctl_share_give(c, CTL_POOL_REGION, cl->eng.user);
	}
	ctl_place_give(c->places, cl);
	return rc;
}

int
ctl_client_create(struct eng_control *c, const char *name, const struct client_home *home,
	struct ctl_client **out)
{
	struct shm_header h, *shared = home->base;
	struct ctl_inbox *in = calloc(1, sizeof(*in));
	struct ctl_client *cl = client_alloc(c->cfg->nstages);
	const struct eng_limits l = ctl_limits(c);
	int n = ctl_client_layout(c->cfg->nstages, &l, home->size, home->mem_len, &h);

	if (n == 0 && (in == NULL || cl == NULL))
		n = -ENOMEM;
	if (n < 0) {
		free(in);
		free(cl);
		return n;
	}
	for (unsigned i = 0; i < SHM_MAX_REGIONS; i++)
		cl->region[i].fd = cl->region[i].guard = cl->map[i].fd = cl->map[i].guard = -1;
	cl->flat = home->fd < 0;
	cl->conn = home->conn;
	if (!cl->flat) {
		cl->map[SHM_HOME] = (struct eng_region){
			.base = home->base, .size = home->size, .fd = home->fd, .page = home->page};
		cl->map[SHM_HOME].guard = eng_guard(home->base, home->size, &cl->eng.dead);
		n = SK_MIN(cl->map[SHM_HOME].guard, 0);
		if (n == 0 && home->page != 0)
			ctl_region_watch_home(&cl->map[SHM_HOME], h.heap);
	}
	if (n == 0)
		n = client_init(c, cl, name, home, &l, &h);
	if (n == 0)
		n = client_place(c, cl);
	if (n < 0) {
		eng_unguard(cl->map[SHM_HOME].guard);
		free(in);
		client_fini(cl, c->cfg->nstages);
		return n;
	}
	h.engine_alive = 1;
	memcpy(shared, &h, sizeof(h));
	__atomic_store_n(&shared->magic, SHM_MAGIC, __ATOMIC_RELEASE);
	*out = cl;
	in->kind = CTL_IN_ADD;
	in->add = cl;
	ctl_inbox_push(c, in);
	return n;
}

void
ctl_client_free(struct eng_control *c, struct ctl_client *cl)
{
	for (uint32_t i = 0; i < SHM_MAX_REGIONS; i++)
		ctl_region_unmap(cl, i);
	eng_waker_del(&cl->eng, sk_clock_ns(CLOCK_MONOTONIC));
	if (cl->eng.wake_fd >= 0)
		close(cl->eng.wake_fd);
	ctl_place_give(c->places, cl);
	client_fini(cl, c->cfg->nstages);
}

static void
client_added(struct eng_control *c, struct ctl_msg *m)
{
	struct ctl_client *cl = m->client;

	if (--cl->waiting)
		return;
	/* If the client was removed meanwhile, ctl_client_reap_poll() destroys its objects. */
	if (cl->phase != CTL_ADDING)
		return;
	cl->phase = CTL_LIVE;
	ctl_ring_client(c, cl);
}

void
ctl_client_add(struct eng_control *c, struct ctl_client *cl)
{
	TAILQ_INSERT_TAIL(&c->all, cl, all);
	c->clients[cl->eng.index] = cl;
	ctl_total(&c->totals.clients, 1);
	cl->phase = CTL_ADDING;
	ctl_client_rates(c, cl, &cl->eng.rates, &cl->eng.user_rates);
	ctl_client_class(c, cl);
	for (unsigned i = 0; i < c->cfg->nstages; i++) {
		struct ctl_msg *m = ctl_msg_get(c, ENG_CE_CLIENT_ADD, client_added);

		m->m.client = &cl->eng;
		m->client = cl;
		cl->waiting++;
		ctl_send_stage(c, i, m);
	}
}

/* ---- From any thread ---- */

int
ctl_client_attach_flat(struct eng_control *c, const char *name, void *base, size_t size,
	size_t mem_len, int wake_fd)
{
	struct client_home home = {
		.base = base, .size = size, .mem_len = mem_len, .fd = -1, .wake_fd = wake_fd};
	static const struct sk_key key = {{0x74656e616e74, 0}};
	struct ctl_client *cl;

	/* Flat clients with one name are one tenant, since the program that attaches them chooses
	 * the names. Bit 63 makes them different from all user IDs. */
	home.tenant = sk_siphash(&key, name, strlen(name)) | 1ull << 63;
	return ctl_client_create(c, name, &home, &cl);
}

int
ctl_client_detach(struct eng_control *c, int id)
{
	struct ctl_inbox *in;

	if (ctl_client_gone(c, id))
		return -EINVAL;
	in = calloc(1, sizeof(*in));
	if (in == NULL)
		return -ENOMEM;
	in->kind = CTL_IN_DETACH;
	in->detach = (uint32_t)id;
	ctl_inbox_push(c, in);
	return 0;
}

bool
ctl_client_gone(struct eng_control *c, int id)
{
	return !ctl_place_holds(c->places, id);
}
