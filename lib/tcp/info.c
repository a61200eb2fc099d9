/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that read and set properties of a connection for its owner. */
#include "tcp_priv.h"

static const char *const state_names[TCPS_COUNT] = {
	[TCPS_CLOSED] = "CLOSED",
	[TCPS_SYN_SENT] = "SYN-SENT",
	[TCPS_SYN_RCVD] = "SYN-RECEIVED",
	[TCPS_ESTABLISHED] = "ESTABLISHED",
	[TCPS_FIN_WAIT_1] = "FIN-WAIT-1",
	[TCPS_FIN_WAIT_2] = "FIN-WAIT-2",
	[TCPS_CLOSE_WAIT] = "CLOSE-WAIT",
	[TCPS_CLOSING] = "CLOSING",
	[TCPS_LAST_ACK] = "LAST-ACK",
	[TCPS_TIME_WAIT] = "TIME-WAIT",
};

void
tcp_get_info(const struct tcp_conn *c, struct tcp_info *out)
{
	*out = (struct tcp_info){
		.state = state_names[c->state],
		.srtt_ns = c->srtt,
		.rttvar_ns = c->rttvar,
		.rto_ns = tcp_rtt_rto(c),
		.min_rtt_ns = c->rack.min_rtt,
		.cwnd = c->cwnd,
		.ssthresh = c->ssthresh,
		.snd_wnd = c->snd_wnd,
		.rcv_wnd = c->rcv_adv - c->rcv_nxt,
		.in_flight = tcp_in_flight(c),
		.queued = c->queued,
		.emss = c->emss,
		.retransmits = c->n_retransmits,
		.rtos = c->n_rtos,
		.tlps = c->n_tlps,
	};
}

uint32_t
tcp_emss(const struct tcp_conn *c)
{
	return c->emss;
}

const struct tcp_tuple *
tcp_tuple(const struct tcp_conn *c)
{
	return &c->tuple;
}

void *
tcp_user(const struct tcp_conn *c)
{
	return c->user;
}

void
tcp_set_user(struct tcp_conn *c, void *user)
{
	c->user = user;
}

struct tcp_listener *
tcp_conn_listener(const struct tcp_conn *c)
{
	return c->listener;
}

int
tcp_close_reason(const struct tcp_conn *c)
{
	return c->reason;
}

bool
tcp_all_acked(const struct tcp_conn *c)
{
	return c->queued == 0;
}

void
tcp_set_tso(struct tcp_conn *c, uint32_t max_bytes)
{
	c->tso_max = max_bytes;
}
