/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Credits between the ULP and the transaction sublayer (section 8.2.3): the cost of a transaction,
 * and the six counters. The functions are pure arithmetic: the ULP's part of a connection uses
 * them, and may run on another lcore than the pools.
 */
#include "falcon.h"

void
fa_cost_push(const struct fa_pools *p, uint32_t len, struct fa_credits *out)
{
	*out = (struct fa_credits){
		.req_pkt_tx = 1, .req_buf_tx = fa_cells(len, p->tx_cell), .req_pkt_rx = 1};
}

void
fa_cost_pull(const struct fa_pools *p, uint32_t response_len, struct fa_credits *out)
{
	*out = (struct fa_credits){.req_pkt_tx = 1,
		.req_buf_tx = 1,
		.req_pkt_rx = 1,
		.req_buf_rx = fa_cells(response_len, p->rx_cell)};
}

void
fa_cost_pull_data(const struct fa_pools *p, uint32_t len, struct fa_credits *out)
{
	*out = (struct fa_credits){.data_pkt_tx = 1, .data_buf_tx = fa_cells(len, p->tx_cell)};
}

bool
fa_credits_take(struct fa_credits *have, const struct fa_credits *cost)
{
	if (have->req_pkt_tx < cost->req_pkt_tx || have->req_buf_tx < cost->req_buf_tx ||
		have->req_pkt_rx < cost->req_pkt_rx || have->req_buf_rx < cost->req_buf_rx ||
		have->data_pkt_tx < cost->data_pkt_tx || have->data_buf_tx < cost->data_buf_tx)
		return false;
	have->req_pkt_tx -= cost->req_pkt_tx;
	have->req_buf_tx -= cost->req_buf_tx;
	have->req_pkt_rx -= cost->req_pkt_rx;
	have->req_buf_rx -= cost->req_buf_rx;
	have->data_pkt_tx -= cost->data_pkt_tx;
	have->data_buf_tx -= cost->data_buf_tx;
	return true;
}

void
fa_credits_give(struct fa_credits *have, const struct fa_credits *cost)
{
	have->req_pkt_tx += cost->req_pkt_tx;
	have->req_buf_tx += cost->req_buf_tx;
	have->req_pkt_rx += cost->req_pkt_rx;
	have->req_buf_rx += cost->req_buf_rx;
	have->data_pkt_tx += cost->data_pkt_tx;
	have->data_buf_tx += cost->data_buf_tx;
}
