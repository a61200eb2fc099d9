/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The golden table: goodput by loss and by the bottleneck's buffer, in virtual time. The bounds are
 * a little below and above the values that were measured when they were written. A change that
 * moves a value out of its bounds has changed loss recovery or the growth of the window, for better
 * or worse.
 */
#include <criterion/criterion.h>

#include "vwire.h"

#define RATE  1000000000ull /* bits per second */
#define BYTES (8u << 20)
#define CHUNK (64u << 10)

struct flow {
	struct tcp_conn *c;
	uint64_t sent, got;
	bool done;
};

static uint8_t zeros[CHUNK];

static void
push(struct vw_end *e, struct tcp_conn *c)
{
	struct flow *f = e->arg;

	while (f->sent < BYTES && tcp_send_space(c) > 0) {
		vw_send(e, c, zeros, CHUNK, 8000);
		f->sent += CHUNK;
	}
}

static void
on_event(struct vw_end *e, struct tcp_conn *c, enum tcp_event ev)
{
	if (e->index == 0 && (ev == TCP_EV_CONNECTED || ev == TCP_EV_SENT))
		push(e, c);
}

static void
on_bytes(struct vw_end *e, struct tcp_conn *c, const uint8_t *data, uint32_t len)
{
	struct flow *f = e->arg;

	f->got += len;
	f->done = f->got == BYTES;
}

/* Returns goodput in percent of the wire's rate; headers count as overhead. */
static double
goodput(const char *cc, double loss, uint32_t buffer, uint64_t reorder_ns)
{
	struct vw_params p = {.seed = 7,
		.delay_ns = 50000,
		.loss = loss,
		.rate_bps = RATE,
		.buffer = buffer,
		.reorder = reorder_ns ? 0.05 : 0,
		.jitter_ns = reorder_ns,

		.ce_above = cc[0] == 'd' ? 16 << 10 : 0};
	struct flow f = {0};
	struct tcp_config cfg;
	struct vwire *w;
	uint64_t ns;

	vw_config(&cfg);
	cfg.cc = cc;
	w = vw_create(&p, &cfg);
	for (unsigned i = 0; i < 2; i++) {
		w->end[i].arg = &f;
		w->end[i].hooks.event = on_event;
		w->end[i].hooks.bytes = on_bytes;
	}
	vw_connect(w, NULL);
	ns = vw_run_until(w, 100000000000, &f.done);
	cr_assert(f.done);
	vw_destroy(w);
	return BYTES * 8e9 / (double)ns / RATE * 100;
}

static const struct row {
	const char *cc;
	double loss;
	uint32_t buffer;    /* bytes; the path itself holds 12 500 */
	double least, most; /* percent */
	double reordered;   /* lower bound when each twentieth segment is late by up to 40 us */
} golden[] = {
	{"cubic", 0, 16 << 10, 94, 97, 93},
	{"cubic", 0, 256 << 10, 94, 97, 93},
	{"cubic", 0.001, 16 << 10, 92, 97, 91},
	{"cubic", 0.001, 256 << 10, 93, 97, 92},
	{"cubic", 0.01, 16 << 10, 78, 93, 75},
	{"cubic", 0.01, 256 << 10, 80, 94, 77},
	{"cubic", 0.05, 16 << 10, 24, 45, 24},
	{"cubic", 0.05, 256 << 10, 22, 45, 24},
	{"dctcp", 0, 16 << 10, 92, 97, 92},
	{"dctcp", 0, 256 << 10, 93, 97, 93},
	{"dctcp", 0.001, 16 << 10, 86, 96, 86},
	{"dctcp", 0.001, 256 << 10, 92, 97, 91},
	{"dctcp", 0.01, 16 << 10, 66, 85, 65},
	{"dctcp", 0.01, 256 << 10, 68, 88, 63},
	{"dctcp", 0.05, 16 << 10, 14, 32, 12},
	{"dctcp", 0.05, 256 << 10, 14, 32, 12},
	{"none", 0, 256 << 10, 55, 97, 50},
};

Test(tcp_goodput, golden_table)
{
	for (unsigned i = 0; i < sizeof(golden) / sizeof(golden[0]); i++) {
		const struct row *r = &golden[i];
		double g = goodput(r->cc, r->loss, r->buffer, 0);
		double late = goodput(r->cc, r->loss, r->buffer, 40000);

		cr_expect(g >= r->least && g <= r->most, "%s, loss %g, buffer %u: %.1f %%", r->cc,
			r->loss, r->buffer, g);
		cr_expect(late >= r->reordered && late <= 97,
			"%s, loss %g, buffer %u, reordered: %.1f %%", r->cc, r->loss, r->buffer,
			late);
	}
}
