/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data path's part of congestion control (10.6). It measures, passes events with a flow's state
 * to the algorithm, and enforces the results: windows, timeout, path. fcwnd applies to each window
 * of a connection, over all flows together; so does ncwnd.
 */
#include <string.h>

#include "conn_priv.h"

#define TICKS_NS(t) ((uint64_t)(t)*FA_TICK_PS / 1000)
#define PATH_HIGH   (0xfffffu & ~FA_PATH_LOW)

static const struct fa_algorithm *
algorithm(const struct fa_conn *c)
{
	return c->params.algorithm;
}

/* Returns a path of the flow whose low bits the list permits: another one than the present path, if
 * the list has two. `value` determines which one. */
static uint32_t
listed_path(const struct fa_conn *c, unsigned flow, uint32_t value)
{
	const uint16_t *list = c->params.paths;
	unsigned flows = c->pdl.flows, i = (value % FA_PATHS & ~(flows - 1u)) | flow;

	if (((list[i] ^ c->pdl.flow[flow].path) & FA_PATH_LOW) == 0)
		i = (i + flows) % FA_PATHS;
	return (value & PATH_HIGH) | (list[i] & FA_PATH_LOW);
}

/* Chooses a path: the upper 18 bits at random, the low two are the flow's number; or one whose low
 * bits are in fa_params.paths. */
static void
choose_path(struct fa_conn *c, unsigned flow)
{
	uint32_t random = pdl_random(c->s);

	c->pdl.flow[flow].path =
		c->params.paths == NULL ? (random & 0xffffc) | flow : listed_path(c, flow, random);
}

void
fa_conn_path(struct fa_conn *c, uint32_t path)
{
	for (unsigned i = 0; i < c->pdl.flows; i++)
		c->pdl.flow[i].path = c->params.paths != NULL ? listed_path(c, i, path)
							      : (path & ~(c->pdl.flows - 1u)) | i;
}

/* One path has one result, and most others have another one: a new path of the peer's packets
 * usually is a new path of their acknowledgements, too. The product spreads paths whose bits have a
 * pattern. */
uint32_t
pdl_path_back(const struct fa_conn *c, uint32_t path)
{
	const uint16_t *list = c->params.paths;
	uint32_t group = (path >> 2) * 0x9e3779b1u / (UINT32_MAX / (FA_PATHS / 4) + 1);

	return (path & PATH_HIGH) | (list[group * 4 + path % 4] & FA_PATH_LOW);
}

static void
repath(struct fa_conn *c, unsigned flow)
{
	choose_path(c, flow);
	c->pdl.n.repaths++;
	fa_trace(c, FA_REPATH);
}

static void
enforce(struct fa_conn *c)
{
	struct pdl_conn *d = &c->pdl;
	uint64_t fcwnd = 0;
	uint32_t rto = 0, rtt = 0;

	for (unsigned i = 0; i < d->flows; i++) {
		const struct fa_cc *cc = &d->flow[i].cc;

		fcwnd += cc->fcwnd;
		rto = SK_MAX(rto, cc->rto);
		rtt = SK_MAX(rtt, cc->rtt);
	}
	d->fcwnd = (uint32_t)SK_MIN(SK_MAX(fcwnd / FA_CWND_ONE, 1u), PDL_WINDOW_MAX);
	d->ncwnd = SK_MAX(d->nic.ncwnd / FA_CWND_ONE, 1u);
	/* Before the first measurement the algorithm has no meaningful timeout. */
	d->rto_ns = rtt ? SK_MAX(TICKS_NS(rto), c->s->cfg.rto_min_ns) : c->s->cfg.rto_initial_ns;
	d->pto_ns = rtt ? SK_MAX(2 * TICKS_NS(rtt) + c->s->cfg.ack_delay_ns, PDL_PTO_MIN_NS)
			: c->s->cfg.rto_initial_ns / 2;
}

void
pdl_cc_init(struct fa_conn *c)
{
	struct pdl_conn *d = &c->pdl;
	const struct fa_algorithm *a;

	if (c->params.algorithm == NULL)
		c->params.algorithm = &fa_swift;
	a = algorithm(c);
	for (unsigned i = 0; i < d->flows; i++) {
		struct fa_cc *cc = &d->flow[i].cc;

		memset(cc, 0, sizeof(*cc));
		cc->rto_min = fa_ticks(c->s->cfg.rto_min_ns);
		a->init(cc, i ? NULL : &d->nic, a->param);
		choose_path(c, i);
	}
	enforce(c);
}

static void
cc_run(struct fa_conn *c, struct fa_rue_event *ev)
{
	struct pdl_flow *f = &c->pdl.flow[ev->flow];
	struct fa_rue_result res = {0};

	ev->acked = f->acked;
	f->acked = 0;
	algorithm(c)->run(&f->cc, &c->pdl.nic, ev, &res, algorithm(c)->param);
	if (res.randomize_path)
		repath(c, ev->flow);
	enforce(c);
}

/*
 * Notes how long a packet and its acknowledgement were in the two hosts: in the queues of their
 * ports, and with the peer. This time is part of the round trip and no delay of the network, and it
 * grows at once for all connections when hosts get busy. The average of all connections shows that
 * to one that was idle, or that waits for its first acknowledgement.
 */
static void
note_wait(struct fa_stack *s, uint32_t ticks)
{
	uint64_t *avg = &s->pdl.wait_ns, wait = SK_MIN(TICKS_NS(ticks), PDL_WAIT_MAX_NS);

	*avg = wait > *avg ? (*avg + wait) / 2 : *avg - (*avg - wait) / 16;
}

uint32_t
pdl_cc_ack(struct fa_conn *c, uint64_t now, const struct fa_in *in, unsigned flow)
{
	const struct wire_falcon *h = in->hdr;
	struct pdl_flow *f = &c->pdl.flow[flow];
	struct fa_rue_event ev = {
		.type = h->type == FALCON_NACK ? FA_RUE_NACK : FA_RUE_ACK,
		.nack_code = h->type == FALCON_NACK ? h->nack_code : 0,
		.t1 = h->t1,
		.t2 = h->t2,
		.t3 = in->stamp,
		.t4 = fa_ticks(now) - in->waited,
		.now = fa_ticks(now),
		.hops = h->hops,
		.rx_level = h->rx_level,
		.ecn = h->ecn,
		.metadata = h->rue,
		.eack = h->type == FALCON_EACK,
		.eack_drop = h->type == FALCON_EACK && pdl_loss_shown(c, flow),
		.own = h->own_request || h->own_data,
		.flow = (uint8_t)flow,
	};
	uint32_t rtt = ev.now - ev.t1, there = ev.t3 - ev.t2;

	/* Times of a peer that forges them, or of a packet older than the clock, are not used. */
	if (rtt > PDL_RTT_MAX || there > PDL_RTT_MAX)
		return 0;
	/* t2 may be a while before the packet's arrival, but is no reason for a negative delay. */
	there = SK_MIN(there, rtt);
	note_wait(c->s, SK_MIN(there + in->waited, rtt));
	/* Only a time between t1 and now is newer than t1. Any other one is older, by up to a wrap
	 * of the ticks if the flow was idle for minutes. */
	if (!f->rack_valid || f->rack_t1 - ev.t1 > rtt) {
		f->rack_valid = true;
		f->rack_t1 = ev.t1;
		/* The time that the peer took is excluded: packets that it had not received when it
		 * sent the acknowledgement had not arrived by then. */
		f->rack_rtt = rtt - there;
	}
	cc_run(c, &ev);
	return SK_MAX(rtt, 1u);
}

void
pdl_cc_retransmit(
	struct fa_conn *c, uint64_t now, unsigned flow, enum fa_rue_retransmit why, unsigned times)
{
	struct fa_rue_event ev = {
		.type = FA_RUE_RETRANSMIT,
		.retransmit = (uint8_t)why,
		.retransmits = (uint8_t)SK_MIN(times, 7u),
		.now = fa_ticks(now),
		.flow = (uint8_t)flow,
	};

	cc_run(c, &ev);
	/* A path on which nothing returns after repeated timeouts may be broken; acknowledgements
	 * will return on the new one. */
	if (why == FA_RUE_TIMEOUT && times >= PDL_REPATH_TIMEOUTS)
		repath(c, flow);
}
