/* SPDX-License-Identifier: BSD-3-Clause */
/* Initialization and release of the transaction sublayer's part of a stack and of a connection. */
#include "conn_priv.h"

#include <errno.h>

void
tl_config_default(struct fa_config *cfg)
{
	cfg->pools = (struct fa_pools){
		.tx_pkt_req = 8192,
		.tx_buf_req = 524288,
		.tx_pkt_data = 4096,
		.tx_buf_data = 262144,
		.rx_pkt_ulp = 8192,
		.rx_buf_ulp = 65536,
		.rx_pkt_net = 8192,
		.rx_buf_net = 65536,
		.rx_pkt_red = 2048,
		.rx_buf_red = 16384,
		.pulls = 65536,
		.tx_cell = 64,
		.rx_cell = 512,
	};
	cfg->reclaim_ns = 30000000000ull;
	cfg->conn_requests = 1024;
	cfg->conn_pulls = 16384;
	cfg->conn_data = 1024;
	cfg->conn_waiting = 1024;
	cfg->push_reoffer = true;
	cfg->rx_thresholds_log2 = 11; /* steps of 2048 cells: level 31 is a full default pool */
	cfg->rx_ema_shift = 0;
}

int
tl_stack_init(struct fa_stack *s, uint64_t now)
{
	TAILQ_INIT(&s->tl.evictable);
	return tl_pools_init(s);
}

void
tl_stack_fini(struct fa_stack *s)
{
	tl_pools_fini(s);
}

/* Each region must hold the resources of one transaction of a full MTU, the red zone those of one
 * request. */
static bool
mtu_fits(const struct fa_pools *p, uint32_t mtu)
{
	uint32_t tx = tl_cells(mtu, p->tx_cell), rx = tl_cells(mtu, p->rx_cell);

	return tx <= p->tx_buf_req && tx <= p->tx_buf_data && rx <= p->rx_buf_ulp &&
	       rx <= p->rx_buf_red;
}

int
tl_conn_init(struct fa_conn *c, uint64_t now)
{
	struct tl_conn *tl = &c->tl;

	if (!mtu_fits(&c->s->cfg.pools, c->params.mtu) || !tl_shares_fit(c->s, c->params.mtu))
		return -EINVAL;
	tl_pools_mtu(c->s, c->params.mtu);
	tl->tx_rsn = c->params.tx_rsn;
	tl->rx_rsn = tl->judged = c->params.rx_rsn;
	tl->rnr_at = tl->reclaim_at = SK_NEVER;
	TAILQ_INIT(&tl->reqs);
	TAILQ_INIT(&tl->ins);
	TAILQ_INIT(&tl->ready);
	TAILQ_INIT(&tl->refused);
	TAILQ_INIT(&tl->data_waits);
	return 0;
}

void
tl_conn_fini(struct fa_conn *c)
{
	struct fa_stack *s = c->s;
	struct tl_txn *t;

	while ((t = TAILQ_FIRST(&c->tl.reqs)) != NULL) {
		TAILQ_REMOVE(&c->tl.reqs, t, link);
		tl_remove(&s->tl.pulls, t);
		fa_buf_free(s, t->buf);
		tl_request_rx_done(s, t);
		tl_request_free(s, t);
	}
	tl_wait_drop(c);
	while ((t = TAILQ_FIRST(&c->tl.ins)) != NULL)
		tl_target_finish(t);
	tl_span_drop(c);
	fa_tl_timer(c, SK_NEVER);
}

void
tl_poll(struct fa_stack *s, uint64_t now)
{
	if (s->tl.waits[TL_DATA].count > 0)
		tl_data_resume(s, now);
	if (s->tl.waits[TL_REQUESTS].count > 0)
		tl_wait_resume(s, now);
	tl_xon(s);
}

uint64_t
tl_deadline(const struct fa_stack *s)
{
	/* All that waits in TL waits for a packet, a call or a timer. */
	return SK_NEVER;
}
