/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shares that users have of the pools (fa_config.shares), and the turns of connections that
 * wait for resources. A share counts packet contexts: a transaction with more buffer cells than a
 * packet context has on average takes several units. So what the shares permit fits into both
 * regions of a pool. Users take turns, and so do the connections of a user: one whose peers
 * acknowledge nothing delays no other user.
 */
#include "conn_priv.h"

#include <errno.h>

#include "../base/mem.h"

#define MINIMUM_MIN 4 /* units: two packets of a full MTU */

static int
share_init(struct sk_share *share, const struct fa_shares *cfg, uint32_t size)
{
	return sk_share_init(share, size, SK_MAX(cfg->users, 1u), cfg->reserved,
		sk_share_percent(size, cfg->minimum, MINIMUM_MIN),
		sk_share_percent(size, cfg->most, MINIMUM_MIN));
}

static uint32_t
average_cells(uint32_t buf, uint32_t pkt)
{
	return SK_MAX(buf / pkt, 1u);
}

int
tl_shares_init(struct fa_stack *s)
{
	const struct fa_pools *p = &s->cfg.pools;
	const struct fa_shares *cfg = &s->cfg.shares;
	struct tl_shares *sh = &s->tl.shares;
	uint32_t users = SK_MAX(cfg->users, 1u), whole = users == 1 ? SK_SHARE_SIZE_MAX : 0;

	if (cfg->minimum > 100 || cfg->most > 100)
		return -EINVAL;
	sh->tx_cells = SK_MIN(average_cells(p->tx_buf_req, p->tx_pkt_req),
		average_cells(p->tx_buf_data, p->tx_pkt_data));
	sh->rx_cells = SK_MIN(average_cells(p->rx_buf_ulp, p->rx_pkt_ulp),
		p->rx_pkt_net > p->rx_pkt_red ? average_cells(p->rx_buf_net - p->rx_buf_red,
							p->rx_pkt_net - p->rx_pkt_red)
					      : UINT32_MAX);
	/* The units of a single user bound nothing, except for pulls. */
	if (share_init(&sh->requests, cfg, SK_MAX(SK_MIN(p->tx_pkt_req, p->rx_pkt_ulp), whole)) ||
		share_init(&sh->net, cfg, SK_MAX(p->rx_pkt_net - p->rx_pkt_red, whole)) ||
		share_init(&sh->pulls, cfg, p->pulls) ||
		share_init(&sh->data, cfg, SK_MAX(p->tx_pkt_data, whole)))
		return -ENOMEM;
	s->tl.users = sk_mem_alloc(users * sizeof(*s->tl.users));
	if (s->tl.users == NULL)
		return -ENOMEM;
	for (unsigned kind = 0; kind < TL_KINDS; kind++) {
		TAILQ_INIT(&s->tl.waits[kind].users);
		for (uint32_t i = 0; i < users; i++)
			TAILQ_INIT(&s->tl.users[i].waits[kind].conns);
	}
	return 0;
}

void
tl_shares_fini(struct fa_stack *s)
{
	struct tl_shares *sh = &s->tl.shares;

	sk_share_fini(&sh->requests);
	sk_share_fini(&sh->net);
	sk_share_fini(&sh->pulls);
	sk_share_fini(&sh->data);
	if (s->tl.users != NULL)
		sk_mem_free(s->tl.users, SK_MAX(s->cfg.shares.users, 1u) * sizeof(*s->tl.users));
	s->tl.users = NULL;
}

int
fa_conn_share(struct fa_conn *c, uint32_t user)
{
	if (user >= SK_MAX(c->s->cfg.shares.users, 1u))
		return -EINVAL;
	c->tl.share = user;
	return 0;
}

bool
tl_shares_fit(const struct fa_stack *s, uint32_t mtu)
{
	const struct tl_shares *sh = &s->tl.shares;
	uint32_t tx = tl_units(tl_cells(mtu, s->cfg.pools.tx_cell), sh->tx_cells);
	uint32_t rx = tl_units(tl_cells(mtu, s->cfg.pools.rx_cell), sh->rx_cells);

	return SK_MAX(tx, rx) <= sh->requests.most && tx <= sh->data.most;
}

uint32_t
tl_shares_held(const struct tl_stack *tl)
{
	const struct tl_shares *sh = &tl->shares;

	return sh->requests.held + sh->net.held + sh->pulls.held + sh->data.held;
}

/* ---- Turns ---- */

void
tl_list(struct fa_conn *c, enum tl_kind kind)
{
	struct tl_user *u = &c->s->tl.users[c->tl.share];
	struct tl_waits *w = &c->s->tl.waits[kind];

	if (TAILQ_EMPTY(&u->waits[kind].conns)) {
		TAILQ_INSERT_TAIL(&w->users, u, waits[kind].link);
		w->count++;
	}
	TAILQ_INSERT_TAIL(&u->waits[kind].conns, c, tl.turn[kind]);
	c->tl.listed[kind] = true;
}

void
tl_unlist(struct fa_conn *c, enum tl_kind kind)
{
	struct tl_user *u = &c->s->tl.users[c->tl.share];
	struct tl_waits *w = &c->s->tl.waits[kind];

	if (!c->tl.listed[kind])
		return;
	TAILQ_REMOVE(&u->waits[kind].conns, c, tl.turn[kind]);
	c->tl.listed[kind] = false;
	if (TAILQ_EMPTY(&u->waits[kind].conns)) {
		TAILQ_REMOVE(&w->users, u, waits[kind].link);
		w->count--;
	}
}

/* A user whose connection cannot continue lacks resources for all: it waits for the next call. */
void
tl_turns(struct fa_stack *s, enum tl_kind kind, uint64_t now,
	bool (*step)(struct fa_conn *c, uint64_t now))
{
	struct tl_waits *w = &s->tl.waits[kind];
	uint32_t failed = 0;

	while (failed < w->count) {
		struct tl_user *u = TAILQ_FIRST(&w->users);
		struct fa_conn *c = TAILQ_FIRST(&u->waits[kind].conns);

		TAILQ_REMOVE(&w->users, u, waits[kind].link);
		TAILQ_INSERT_TAIL(&w->users, u, waits[kind].link);
		if (!step(c, now)) {
			failed++;
			continue;
		}
		failed = 0;
		if (c->tl.listed[kind]) {
			TAILQ_REMOVE(&u->waits[kind].conns, c, tl.turn[kind]);
			TAILQ_INSERT_TAIL(&u->waits[kind].conns, c, tl.turn[kind]);
		}
	}
}
