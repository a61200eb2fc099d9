/* SPDX-License-Identifier: BSD-3-Clause */
/* Events and states for the tests of congestion control. */
#ifndef TEST_RUE_EVENT_H
#define TEST_RUE_EVENT_H

#include <string.h>

#include "../../../lib/falcon/rue.h"

#define W(packets) ((uint32_t)((packets)*FA_CWND_ONE))

struct rue_case {
	const struct fa_algorithm *a; /* Swift, unless the test sets another */
	struct fa_rue_params p;
	struct fa_cc cc;
	struct fa_cc_nic nic;
	struct fa_rue_event ev;
	struct fa_rue_result res;
};

/* Initializes an established connection at `now`: a round trip of 200 ticks, a target of exactly
 * 100 for every window, both markers in the distant past. */
static inline void
rue_case_init(struct rue_case *t, uint32_t now)
{
	memset(t, 0, sizeof(*t));
	t->a = &fa_swift;
	t->p = fa_rue_defaults;
	t->p.swift.base_delay = 100;
	t->p.swift.flow_max = 0;
	t->p.swift.per_hop = 0;
	t->p.rtt_alpha = 0;
	t->cc.rto_min = 1000;
	fa_swift.init(&t->cc, &t->nic, &t->p);
	t->cc.rtt = 200;
	t->cc.fabric_marker = now - 1000;
	t->nic.marker = now - 1000;
	t->ev.now = now;
	t->ev.acked = 1;
}

/* Runs an acknowledgement after a round trip of `rtt` ticks, `delay` of them in the fabric. */
static inline void
rue_ack(struct rue_case *t, uint32_t rtt, uint32_t delay)
{
	struct fa_rue_event *ev = &t->ev;

	ev->type = FA_RUE_ACK;
	ev->t4 = ev->now;
	ev->t1 = ev->now - rtt;
	ev->t2 = 77000; /* the peer's clock is independent */
	ev->t3 = ev->t2 + rtt - delay;
	t->a->run(&t->cc, &t->nic, ev, &t->res, &t->p);
}

static inline void
rue_nack(struct rue_case *t, uint32_t rtt, uint32_t delay, uint8_t code)
{
	struct fa_rue_event *ev = &t->ev;

	ev->type = FA_RUE_NACK;
	ev->nack_code = code;
	ev->t4 = ev->now;
	ev->t1 = ev->now - rtt;
	ev->t2 = 77000;
	ev->t3 = ev->t2 + rtt - delay;
	t->a->run(&t->cc, &t->nic, ev, &t->res, &t->p);
}

static inline void
rue_retransmit(struct rue_case *t, uint8_t why, uint8_t count)
{
	t->ev.type = FA_RUE_RETRANSMIT;
	t->ev.retransmit = why;
	t->ev.retransmits = count;
	t->a->run(&t->cc, &t->nic, &t->ev, &t->res, &t->p);
}

#endif
