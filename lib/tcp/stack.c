/* SPDX-License-Identifier: BSD-3-Clause */
/* The stack: configuration, a turn of the loop, and the order in which connections send. */
#include <string.h>

#include "tcp_priv.h"

SK_REASONS_DEFINE(tcp, TCP_NONE, TCP_REASONS)

void
tcp_config_default(struct tcp_config *cfg)
{
	*cfg = (struct tcp_config){
		.max_conns = 16384,
		.max_half_open = 1024,
		/* Neither one listener nor one host can have all of them; a burst of hundreds of
		 * connections between two hosts still fits. */
		.half_open_per_listener = 512,
		.half_open_per_prefix = 256,
		.max_time_wait = 4096,
		/* A program with a thousand connections may end at once. */
		.max_left = 1024,
		/* 100 Gb/s at a round trip of 80 us: enough for the longest paths of a data
		 * centre. */
		.snd_buf = 1 << 20,
		.rcv_buf = 2 << 20,
		.ooo_slices = 1024,
		/* Less than any sensible pool of receive buffers, so that hostile peers cannot hold
		 * all of it. */
		.ooo_slices_total = 4096,
		/* No segment lives longer than half a second inside one building. */
		.msl_ns = 500000000,
		/* Tail loss probes repair most tails in two round trips; the RTO exceeds the pauses
		 * of a peer that shares its core. */
		.rto_min_ns = 10000000,
		.rto_max_ns = 4000000000,
		.rto_initial_ns = 200000000,
		/* Much more than a round trip, so that answers carry the acknowledgement; much less
		 * than any peer's RTO. */
		.delack_ns = 200000,
		/* RFC 9293 3.8.4: off, unless a silent peer would hold memory. */
		.keepalive_held_ns = 60000000000,
		.keepalive_interval_ns = 5000000000,
		.keepalive_probes = 6,
		.syn_retries = 6,
		.data_retries = 12,
		.zero_window_ns = 120000000000,
		.cc = "cubic",
		.ecn = true,
		.timestamps = true,
		.sack = true,
		.rcv_wscale = 7,
	};
	sk_random(&cfg->isn_key, sizeof(cfg->isn_key));
}

static bool
tcp_stack_config_ok(const struct tcp_config *cfg)
{
	uint64_t conns = (uint64_t)cfg->max_conns + cfg->max_half_open + cfg->max_time_wait;

	return cfg->max_conns && cfg->max_half_open && cfg->half_open_per_listener &&
	       cfg->half_open_per_prefix && conns < (1u << 24) && cfg->max_left < (1u << 24) &&
	       cfg->snd_buf && cfg->snd_buf <= 1u << 30 && cfg->rcv_buf >= 2048 &&
	       cfg->rcv_buf <= 1u << 30 && cfg->rcv_wscale <= TCP_WSCALE_MAX && cfg->ooo_slices &&
	       cfg->ooo_slices_total && cfg->rto_min_ns && cfg->rto_min_ns <= cfg->rto_max_ns &&
	       cfg->rto_initial_ns && cfg->syn_retries < 256 && cfg->data_retries < 256 &&
	       cfg->keepalive_probes < 256 && cfg->cc != NULL && tcp_cc_find(cfg->cc) != NULL;
}

struct tcp_stack *
tcp_stack_create(const struct tcp_config *cfg, const struct tcp_ops *ops, void *ctx, uint64_t now)
{
	struct tcp_stack *s;

	if (!tcp_stack_config_ok(cfg))
		return NULL;
	s = sk_mem_alloc(sizeof(*s));
	if (s == NULL)
		return NULL;
	s->cfg = *cfg;
	s->ops = *ops;
	s->ctx = ctx;
	s->now = now;
	s->cc = tcp_cc_find(cfg->cc);
	s->cfg.cc = s->cc->name;
	s->cfg.ecn |= s->cc->ecn;
	s->pool_size = cfg->max_conns + cfg->max_half_open + cfg->max_time_wait + cfg->max_left;
	s->pool = sk_mem_alloc(s->pool_size * sizeof(*s->pool));
	if (s->pool == NULL) {
		sk_mem_free(s, sizeof(*s));
		return NULL;
	}
	TAILQ_INIT(&s->work);
	TAILQ_INIT(&s->busy);
	TAILQ_INIT(&s->free);
	TAILQ_INIT(&s->tw);
	TAILQ_INIT(&s->left);
	TAILQ_INIT(&s->listeners);
	TAILQ_INIT(&s->holders);
	sk_wheel_init(&s->wheel, now);
	return s;
}

void
tcp_stack_destroy(struct tcp_stack *s)
{
	struct tcp_listener *l;

	for (uint32_t i = 0; i < s->pool_fresh; i++) {
		if (s->pool[i].state == TCPS_CLOSED)
			continue;
		tcp_conn_drop_buffers(&s->pool[i]);
		s->pool[i].listener = NULL;
	}
	while ((l = TAILQ_FIRST(&s->listeners)) != NULL)
		tcp_listen_free(l);
	sk_mem_free(s->pool, s->pool_size * sizeof(*s->pool));
	sk_mem_free(s, sizeof(*s));
}

unsigned
tcp_stack_poll(struct tcp_stack *s, uint64_t now, unsigned budget)
{
	unsigned n, sent, busy = 0;
	struct tcp_conn *c, *served = NULL;

	s->now = now;
	sk_wheel_poll(&s->wheel, now, TCP_TIMERS_PER_POLL, tcp_timers_fire, s);
	n = s->nrst ? tcp_rst_flush(s) : 0;
	while ((c = TAILQ_FIRST(&s->busy)) != NULL) {
		TAILQ_REMOVE(&s->busy, c, work);
		c->where = ON_WORK;
		TAILQ_INSERT_TAIL(&s->work, c, work);
	}
	while (n < budget && busy < TCP_BUSY_PER_POLL && (c = TAILQ_FIRST(&s->work)) != NULL) {
		TAILQ_REMOVE(&s->work, c, work);
		c->where = ON_NONE;
		sent = tcp_output(c, now, SK_MIN(TCP_QUANTUM, budget - n));
		n += sent;
		if (c->where != ON_BUSY)
			continue;
		busy++;
		if (sent > 0)
			served = c;
	}
	/* The connection that filled the port goes last in the next poll. */
	if (served != NULL && served->where == ON_BUSY) {
		TAILQ_REMOVE(&s->busy, served, work);
		TAILQ_INSERT_TAIL(&s->busy, served, work);
	}
	return n;
}

uint64_t
tcp_stack_deadline(const struct tcp_stack *s)
{
	if (!TAILQ_EMPTY(&s->work) || !TAILQ_EMPTY(&s->busy) || s->nrst)
		return s->now;
	return sk_wheel_next(&s->wheel);
}

const uint64_t *
tcp_stack_counters(const struct tcp_stack *s)
{
	return s->counters;
}

size_t
tcp_conn_size(void)
{
	return sizeof(struct tcp_conn);
}
