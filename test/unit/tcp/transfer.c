/* SPDX-License-Identifier: BSD-3-Clause */
/* Two stacks and a wire in virtual time: transfers in both directions under each kind of
 * disturbance, with a check of each byte, and orderly closes. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "vwire.h"

/* Returns byte `i` of the stream that end `e` sends. */
static uint8_t
pattern(unsigned e, uint64_t i)
{
	return (uint8_t)((i * 2654435761u >> 7) ^ (i >> 16) ^ (e * 0x5a));
}

struct side {
	struct tcp_conn *c;
	uint64_t want, sent, got;
	uint32_t rec;
	bool connected, peer_fin, closed;
	int reason;
};

struct both {
	struct side side[2];
	bool done;
};

static void
push(struct vw_end *e, struct side *me)
{
	uint8_t buf[8192];
	uint32_t n;

	while (me->sent < me->want && me->c != NULL && tcp_send_space(me->c) > 0) {
		n = me->rec ? me->rec : 1 + (uint32_t)(vw_random(e->w) % sizeof(buf));
		if (n > me->want - me->sent)
			n = (uint32_t)(me->want - me->sent);
		for (uint32_t i = 0; i < n; i++)
			buf[i] = pattern(e->index, me->sent + i);
		if (vw_send(e, me->c, buf, n, 0))
			return;
		me->sent += n;
	}
	if (me->sent == me->want && me->c != NULL)
		tcp_close(me->c, e->w->now);
}

static void
on_bytes(struct vw_end *e, struct tcp_conn *c, const uint8_t *data, uint32_t len)
{
	struct both *b = e->arg;
	struct side *me = &b->side[e->index];

	for (uint32_t i = 0; i < len; i++)
		cr_assert_eq(data[i], pattern(!e->index, me->got + i), "byte %lu of end %u",
			me->got + i, e->index);
	me->got += len;
}

static void
on_event(struct vw_end *e, struct tcp_conn *c, enum tcp_event ev)
{
	struct both *b = e->arg;
	struct side *me = &b->side[e->index];

	switch (ev) {
	case TCP_EV_CONNECTED:
		me->c = c;
		me->connected = true;
		push(e, me);
		break;
	case TCP_EV_SENT:
		push(e, me);
		break;
	case TCP_EV_PEER_FIN:
		me->peer_fin = true;
		break;
	case TCP_EV_CLOSED:
		me->closed = true;
		me->c = NULL;
		me->reason = tcp_close_reason(c);
		b->done = b->side[0].closed && b->side[1].closed;
		break;
	case TCP_EV_UNREAD:
	case TCP_EV_EMSS:
		break;
	}
}

/* Moves `bytes` in both directions, and closes. Returns the virtual time that passed. */
static uint64_t
transfer(struct vwire *w, struct both *b, uint64_t bytes, uint32_t rec)
{
	uint64_t took;

	for (unsigned i = 0; i < 2; i++) {
		b->side[i] = (struct side){.want = bytes, .rec = rec};
		w->end[i].hooks.bytes = on_bytes;
		w->end[i].hooks.event = on_event;
		w->end[i].arg = b;
	}
	b->done = false;
	vw_connect(w, NULL);
	took = vw_run_until(w, 600000000000, &b->done);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(b->side[i].got, bytes, "seed %lu end %u: %lu bytes of %lu", w->p.seed,
			i, b->side[i].got, bytes);
		cr_assert(b->side[i].peer_fin, "seed %lu end %u: no FIN", w->p.seed, i);
		cr_assert(b->side[i].closed, "seed %lu end %u: not closed", w->p.seed, i);
		cr_assert_eq(b->side[i].reason, 0, "seed %lu end %u: reason %d", w->p.seed, i,
			b->side[i].reason);
	}
	return took;
}

static void
run(struct vw_params p, const struct tcp_config *cfg, uint64_t bytes, uint32_t rec)
{
	struct vwire *w = vw_create(&p, cfg);
	struct both b;

	transfer(w, &b, bytes, rec);
	vw_run(w, 5000000000); /* TIME-WAIT */
	cr_assert_eq(w->end[0].nconns + w->end[1].nconns, 0);
	vw_destroy(w);
}

Test(tcp_transfer, clean_wire)
{
	run((struct vw_params){.seed = 1, .delay_ns = 10000}, NULL, 4 << 20, 0);
}

Test(tcp_transfer, ipv6_and_jumbo_frames)
{
	run((struct vw_params){.seed = 2, .delay_ns = 10000, .mtu = 9000, .v6 = true}, NULL,
		4 << 20, 0);
}

Test(tcp_transfer, tiny_records)
{
	run((struct vw_params){.seed = 3, .delay_ns = 5000}, NULL, 256 << 10, 90);
}

Test(tcp_transfer, tso_runs)
{
	struct vw_params p = {.seed = 4, .delay_ns = 5000, .tso = 65536};
	struct vwire *w = vw_create(&p, NULL);
	struct both b;

	transfer(w, &b, 2 << 20, 1448);
	cr_assert_gt(w->end[0].gso_out, 10);
	vw_destroy(w);
}

Test(tcp_transfer, loss_with_many_seeds)
{
	static const double loss[] = {0.001, 0.01, 0.05, 0.2};

	for (unsigned seed = 0; seed < 24; seed++)
		run(
			(struct vw_params){
				.seed = seed + 10, .delay_ns = 20000, .loss = loss[seed % 4]},
			NULL, seed % 4 == 3 ? 64 << 10 : 256 << 10, 0);
}

Test(tcp_transfer, loss_reordering_duplication_marks_and_refusals)
{
	for (unsigned seed = 0; seed < 40; seed++)
		run((struct vw_params){.seed = seed + 100,
			    .delay_ns = 1000 + seed * 1000,
			    .jitter_ns = 200000,
			    .reorder = 0.1,
			    .loss = 0.02,
			    .dup = 0.02,
			    .ce = 0.05,
			    .busy = 0.1,
			    .refuse = 0.1,
			    .tso = seed % 2 ? 20000 : 0},
			NULL, 256 << 10, seed % 3 ? 0 : 700);
}

Test(tcp_transfer, each_algorithm_without_timestamps_or_sack)
{
	static const char *const cc[] = {"cubic", "dctcp", "none"};
	struct tcp_config cfg;

	for (unsigned i = 0; i < 12; i++) {
		vw_config(&cfg);
		cfg.cc = cc[i % 3];
		cfg.timestamps = i & 1;
		cfg.sack = i & 2;
		run((struct vw_params){.seed = 200 + i,
			    .delay_ns = 10000,
			    .loss = 0.01,
			    .rate_bps = 1000000000,
			    .buffer = 128 << 10,
			    .ce_above = 30000},
			&cfg, 512 << 10, 0);
	}
}
