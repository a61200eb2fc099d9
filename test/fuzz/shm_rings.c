/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared memory whose other side writes arbitrary values. The first input byte chooses between a
 * ring that is consumed and produced while its memory is overwritten, and a whole region that a
 * client attaches to and uses while its engine overwrites it.
 */
#include <saker/saker.h>

#include "../../lib/shm/shm_ring.h"
#include "fuzz.h"

#define REGION 65536

struct input {
	const uint8_t *p;
	size_t left;
};

static uint32_t
next(struct input *in, unsigned bytes)
{
	uint32_t v = 0;

	while (bytes-- > 0 && in->left > 0) {
		v = v << 8 | *in->p++;
		in->left--;
	}
	return v;
}

/* Overwrites a few bytes at a position that the input chooses. */
static void
scribble(struct input *in, uint8_t *base, size_t size)
{
	uint32_t at = next(in, 2) % size, v = next(in, 4);

	memcpy(base + at, &v, size - at < sizeof(v) ? size - at : sizeof(v));
}

static void
rings(struct input *in)
{
	const size_t size = 4096;
	struct shm_ring_at at = {.entries = next(in, 2),
		.cons = next(in, 2),
		.stride = (uint16_t)next(in, 2),
		.log2_count = (uint8_t)next(in, 1)};
	uint8_t *base = aligned_alloc(SHM_LINE, size);
	struct shm_prod prod;
	struct shm_take take;

	CLAIM(base != NULL);
	memset(base, 0, size);
	if (!shm_ring_ok(&at, size, sizeof(uint32_t))) {
		free(base);
		return;
	}
	shm_prod_init(&prod, base, &at);
	shm_take_init(&take, base, &at);
	while (in->left > 0) {
		uint32_t op = next(in, 1), room = shm_prod_room(&prod);
		const void *e = shm_take_peek(&take);

		CLAIM(room <= prod.count);
		if (e != NULL && (op & 1) != 0) {
			uint8_t copy[4096];

			memcpy(copy, e, at.stride);
			shm_take_pop(&take);
		}
		if (room > 0 && (op & 2) != 0) {
			memset((uint8_t *)shm_prod_entry(&prod) + 4, 0xaa, at.stride - 4u);
			shm_prod_push(&prod);
		}
		if ((op & 4) != 0)
			shm_take_publish(&take);
		if ((op & 8) != 0)
			scribble(in, base, size);
	}
	free(base);
}

static struct {
	struct input *in;
	uint8_t *base;
	struct shm_prod
		evt; /* replies now and then as an engine would, with a body from the input */
	struct shm_take cmd;
	bool sane;
} engine;

static void
idle(void *arg)
{
	struct input *in = engine.in;
	struct shm_header *h = (struct shm_header *)engine.base;
	const struct shm_msg *m = engine.sane ? shm_take_peek(&engine.cmd) : NULL;

	if (in->left == 0) {
		h->engine_alive = 0;
		return;
	}
	if (m != NULL && (next(in, 1) & 7) != 0 && shm_prod_room(&engine.evt) > 0) {
		struct shm_msg *reply = shm_prod_entry(&engine.evt);

		memcpy((uint8_t *)reply + 4, (const uint8_t *)m + 4, sizeof(*m) - 4);
		for (uint32_t n = next(in, 1) % 8; n > 0; n--)
			scribble(in, (uint8_t *)&reply->body, 256);
		if ((next(in, 1) & 3) == 0)
			reply->op = (uint16_t)(SHM_EV_CONNECT_REQUEST + next(in, 1) % 16);
		shm_prod_push(&engine.evt);
		shm_take_pop(&engine.cmd);
		shm_take_publish(&engine.cmd);
		return;
	}
	scribble(in, engine.base, REGION);
}

static void
use(struct saker *s, struct input *in)
{
	struct saker_qp_attr attr = {.sq_depth = 4, .rq_depth = 4, .max_send_sge = 2};
	const struct saker_wr wr = {.opcode = RD_IMM};
	struct saker_event ev;
	struct saker_pd *pd;
	struct saker_qp *qp;
	struct rd_wc wc[4];

	if (saker_pd_create(s, &pd) < 0 || saker_cq_create(s, 4, NULL, &attr.send_cq) < 0)
		return;
	attr.recv_cq = attr.send_cq;
	if (saker_qp_create(pd, &attr, &qp) < 0)
		return;
	while (in->left > 0) {
		struct saker_cq *cq;

		CLAIM(saker_cq_poll(attr.send_cq, wc, 4) <= 4);
		CLAIM(saker_post_send(qp, &wr, 1) <= 1);
		CLAIM(saker_post_recv(qp, &wr, 1) <= 1);
		saker_cq_arm(attr.send_cq, false);
		if (saker_event(s, &ev) == 1)
			CLAIM(ev.cm.private_len <= SHM_PRIVATE_MAX);
		(void)saker_cq_event(s, &cq);
		idle(NULL);
	}
}

static void
region(struct input *in)
{
	const struct shm_home home = {.nstages = 2,
		.commands = 4,
		.events = 8,
		.doorbells = 8,
		.cq_events = 8,
		.mem_len = 8192};
	uint8_t *base = aligned_alloc(4096, REGION);
	struct shm_header *h = (struct shm_header *)base;
	struct saker *s;

	CLAIM(base != NULL);
	memset(base, 0, REGION);
	CLAIM(shm_header_lay(h, REGION, &home) == 0);
	h->magic = SHM_MAGIC;
	h->engine_alive = 1;
	engine.in = in;
	engine.base = base;
	engine.sane = true;
	shm_prod_init(&engine.evt, base, &h->evt);
	shm_take_init(&engine.cmd, base, &h->cmd);
	for (uint32_t n = next(in, 1) % 4; n > 0; n--)
		scribble(in, base, sizeof(*h));
	if (saker_open_flat(base, REGION, idle, NULL, &s) == 0) {
		use(s, in);
		saker_close(s);
	}
	free(base);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};

	if ((next(&in, 1) & 1) != 0)
		rings(&in);
	else
		region(&in);
	return 0;
}
