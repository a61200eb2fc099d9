/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures nanoseconds per transaction through both sublayers of two stacks: no rings, no PSP, no
 * port. The wire is an array, and headers pass through their wire format; the ULP takes each
 * request immediately. Under callgrind, --toggle-collect='initiator*' and 'target*' measure the two
 * ends separately.
 *
 *	falcon_pair [push|pull [length [in flight [transactions]]]]
 */
#include "../../lib/falcon/falcon.h"
#include "../../lib/falcon/rue.h"
#include "../../lib/wire/falcon.h"
#include "../support/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFS  8192
#define WIRE  1024
#define BURST 32
#define MTU   4096
#define TURN  2000 /* ns of virtual time */

struct frame {
	uint8_t hdr[FALCON_MAX];
	uint32_t stamp, path;
	struct fa_buf *payload;
	uint32_t len;
};

struct end {
	struct fa_stack *s;
	struct fa_conn *c;
	struct frame wire[WIRE]; /* packets to this end */
	unsigned frames;
	uint64_t done;
};

static struct end ends[2];
static struct fa_buf bufs[BUFS], *free_bufs;
static uint32_t length = 8;
static bool pull;

static struct fa_buf *
buf_get(uint32_t len)
{
	struct fa_buf *b = free_bufs;

	if (b == NULL)
		abort();
	free_bufs = b->next;
	b->len = len;
	b->data_len = 0;
	return b;
}

static void
buf_free(void *ctx, struct fa_buf *b)
{
	b->next = free_bufs;
	free_bufs = b;
}

static int
output(void *ctx, struct fa_conn *c, const struct fa_out *out)
{
	struct end *to = &ends[ctx == &ends[0]];
	struct frame *f = &to->wire[to->frames];

	if (to->frames == WIRE)
		return -1;
	to->frames++;
	f->len = wire_falcon_emit(f->hdr, out->hdr);
	f->stamp = out->stamp;
	f->path = out->path;
	f->payload = out->payload != NULL ? buf_get(out->payload->len) : NULL;
	return 0;
}

static uint64_t clock_ns = 1000000000;

static bool
deliver(void *ctx, struct fa_conn *c, const struct fa_delivery *d)
{
	struct end *e = ctx;
	struct fa_outcome o = {.rsn = d->rsn, .verdict = FA_TAKEN};

	if (d->buf != NULL)
		buf_free(NULL, d->buf);
	if (d->type == FA_COMPLETION || d->type == FA_PULL_DATA) {
		e->done++;
		return true;
	}
	fa_outcome(c, clock_ns, &o);
	if (d->type == FA_PULL)
		fa_pull_data(c, clock_ns, d->rsn, buf_get(d->request_len));
	return true;
}

static void
event(void *ctx, struct fa_conn *c, enum fa_event ev)
{
}

static void
turn(struct end *e)
{
	for (unsigned i = 0; i < e->frames; i++) {
		struct frame *f = &e->wire[i];
		struct wire_falcon h;
		struct fa_in in = {.hdr = &h,
			.payload = f->payload,
			.stamp = f->stamp,
			.path = f->path,
			.ttl = 62};

		if (wire_falcon_parse(
			    &h, f->hdr, f->len + (f->payload != NULL ? f->payload->len : 0)) < 0)
			abort();
		fa_input(e->c, clock_ns, &in);
	}
	e->frames = 0;
	fa_stack_poll(e->s, clock_ns, BURST);
}

__attribute__((noinline)) void initiator(struct end *e, unsigned n);
__attribute__((noinline)) void target(struct end *e);

void
initiator(struct end *e, unsigned n)
{
	while (n--) {
		if (pull)
			fa_pull(e->c, clock_ns, buf_get(28), length);
		else
			fa_push(e->c, clock_ns, buf_get(length));
	}
	turn(e);
	__asm__ volatile("");
}

void
target(struct end *e)
{
	turn(e);
	__asm__ volatile(""); /* prevents a tail call: callgrind needs the function's name */
}

static void
make(struct end *e)
{
	static const struct fa_ops ops = {
		.output = output, .deliver = deliver, .buf_free = buf_free, .event = event};
	struct fa_params p = {
		.protocol = FALCON_RDMA, .ordered = true, .mtu = MTU, .flows = 1, .cid = 1};
	struct fa_config cfg;

	fa_config_default(&cfg);
	p.peer_cid = 1;
	e->s = fa_stack_create(&cfg, &ops, e, clock_ns);
	if (e->s == NULL || fa_conn_create(e->s, clock_ns, &p, &e->c))
		abort();
}

int
main(int argc, char **argv)
{
	uint64_t total, posted = 0;
	unsigned flight, n;
	uint64_t began;
	double ns;

	pull = argc > 1 && strcmp(argv[1], "pull") == 0;
	length = argc > 2 ? (uint32_t)atoi(argv[2]) : 8;
	flight = argc > 3 ? (unsigned)atoi(argv[3]) : 64;
	total = argc > 4 ? strtoull(argv[4], NULL, 0) : 5000000;
	for (n = 0; n < BUFS; n++)
		buf_free(NULL, &bufs[n]);
	make(&ends[0]);
	make(&ends[1]);
	began = now_ns();
	while (ends[0].done < total) {
		n = (unsigned)(posted - ends[0].done);
		n = n < flight && posted < total ? flight - n : 0;
		n = n > BURST ? BURST : n;
		n = n > total - posted ? (unsigned)(total - posted) : n;
		posted += n;
		initiator(&ends[0], n);
		clock_ns += TURN;
		target(&ends[1]);
		clock_ns += TURN;
	}
	ns = (double)(now_ns() - began);
	printf("%s of %u bytes, %u in flight: %.1f ns for both ends, %lu done\n",
		pull ? "pull" : "push", length, flight, ns / (double)total, ends[0].done);
	fa_stack_destroy(ends[0].s);
	fa_stack_destroy(ends[1].s);
	return 0;
}
