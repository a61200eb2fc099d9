/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pools of the control stage, and the share of each user in them (lib/base/share.h). A client
 * takes a unit of a pool before it gets an object, and gives it back when the object is freed. A
 * new pool is one row of the table in share.c.
 */
#ifndef SAKER_ENGINE_CONTROL_SHARE_H
#define SAKER_ENGINE_CONTROL_SHARE_H

#include "../../../base/share.h"
#include "../../../shm/shm_msg.h"
#include "../../engine.h"

enum ctl_pool {
	CTL_POOL_QP, /* the connections of QPs, and host connections: places in c->conns */
	CTL_POOL_OPENED,
	CTL_POOL_CQ,
	CTL_POOL_PD,
	CTL_POOL_MR,
	CTL_POOL_MW,
	CTL_POOL_SRQ,
	CTL_POOL_AH,
	CTL_POOL_HOST,
	CTL_POOL_XRCD,
	CTL_POOL_LISTENER,
	CTL_POOL_REQUEST,
	CTL_POOL_MESSAGE, /* CTL_POOL without CTL_RESERVE */
	/* Mapped regions of clients of the socket, home regions included. Only the socket's thread
	 * takes and gives them. */
	CTL_POOL_REGION,
	CTL_POOLS
};

struct ctl_client;
struct eng_control;

/* Initializes the shares of all pools by the limits of the configuration. Returns 0 or -ENOMEM.
 * ctl_shares_fini() frees them; it may be called without ctl_shares_init(). */
int ctl_shares_init(struct eng_control *c);
void ctl_shares_fini(struct eng_control *c);
/* Takes a unit of the pool for the client. Returns 0, or a refusal written to `m` that names the
 * pool, its number, and the limit: the client's quota (-EDQUOT), the user's most (-EDQUOT), the
 * size of the pool, or the part of it that is not reserved for other users (both -ENOSPC). */
int ctl_take(struct eng_control *c, struct ctl_client *cl, enum ctl_pool pool, struct shm_msg *m);
/* The same, without the client's quota: for objects that no table of the client has. */
int ctl_take_shared(
	struct eng_control *c, struct ctl_client *cl, enum ctl_pool pool, struct shm_msg *m);
/* Gives the unit back. */
void ctl_give(struct eng_control *c, const struct ctl_client *cl, enum ctl_pool pool);
/* Takes a unit for a user. Returns false when the user may not have one. */
bool ctl_share_take(struct eng_control *c, enum ctl_pool pool, uint16_t user);
void ctl_share_give(struct eng_control *c, enum ctl_pool pool, uint16_t user);
/* Returns the most units of the pool that one client may have, for SHM_QUERY_DEVICE. */
uint32_t ctl_most(const struct eng_control *c, const struct ctl_client *cl, enum ctl_pool pool);

#endif
