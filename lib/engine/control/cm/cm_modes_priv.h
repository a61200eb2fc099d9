/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The modes of a Falcon connection (struct shm_modes): ordering mode, error mode, flows, RDMA MTU
 * and PSP. The first of these that sets a mode determines it: the client's command, the listener,
 * the configuration's rows for some peers or ports, and the configuration for all connections.
 */
#ifndef SAKER_ENGINE_CM_MODES_PRIV_H
#define SAKER_ENGINE_CM_MODES_PRIV_H

#include "cm_kind_priv.h"

/* Set the modes of *ask. Return 0, or a refusal (-errno) written to `m`. */

/* For SHM_CONNECT. */
int cm_modes_connect(struct eng_control *c, struct shm_msg *m, struct eng_falcon_ask *ask);
/* For SHM_ACCEPT of the request `r`. */
int cm_modes_accept(struct eng_control *c, const struct cm_request *r, struct shm_msg *m,
	struct eng_falcon_ask *ask);
/* For a QP modified by the program, or a host connection, that requests `modes`. `m` is
 * SHM_QP_MODIFY or, for an attempt or a peer's request later, NULL. The configuration may have
 * changed in between, and then refuse what it has allowed before. */
int cm_modes_modified(struct eng_control *c, const struct shm_modes *modes,
	const struct sk_addr *remote, struct shm_msg *m, struct eng_falcon_ask *ask);

/* Fills in the modes that a peer requests, or that both sides agreed on. */
void cm_modes_describe(const struct eng_falcon_ask *ask, struct shm_modes *out);

#endif
