/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What differs between transports on the control stage: the words of a client are translated into a
 * transport's offer, and a transport's outcome into the words of a client. One table each.
 */
#ifndef SAKER_ENGINE_CM_KIND_PRIV_H
#define SAKER_ENGINE_CM_KIND_PRIV_H

#include "cm.h"

struct cm_kind {
	const char *name;                     /* in sentences to clients: "iWARP" */
	const struct sk_reason_list *reasons; /* of its QPs' errors */
	bool modifiable; /* programs may connect its QPs by modifying them (ibv_modify_qp) */

	/* Sets c->qp_types and what else the registry has to know, if the transport is enabled. */
	void (*configure)(struct eng_control *c);
	/* Fills in the transport's part of *out, whose depths are set. `q` is the connection, or
	 * NULL for a listener; `request` is what it accepts, or NULL; `m` is the client's command,
	 * or NULL for a QP that the program modifies. Returns 0, or a refusal written to `m`. */
	int (*offer)(struct eng_control *c, const struct cm_conn *q,
		const struct eng_outcome *request, struct shm_msg *m, struct eng_offer *out);
	/* Fills in what the answer to a request cannot choose. */
	void (*request)(const struct eng_outcome *o, struct eng_offer *offer);
	/* Makes of a request in *o what an acceptance with `offer` agrees on. */
	void (*agree)(struct eng_outcome *o, const struct eng_offer *offer);
	/* Fills in the transport's part of how a QP starts. */
	void (*start)(const struct eng_outcome *o, struct eng_start *start);
	/* Fills in the transport's part of what a client is told about a connection. */
	void (*describe)(const struct eng_outcome *o, struct shm_cm *cm);
	/* Returns the most private data, bytes, that goes with an offer. */
	size_t (*private_max)(const struct eng_offer *offer);
	/* Returns the type of the QP that can accept a request (enum shm_qp_type). */
	uint8_t (*request_type)(const struct eng_outcome *o);
	/* Returns whether a request names a QP by its number instead of a listener. */
	bool (*names_qp)(const struct eng_outcome *o);
	/* Returns the TCP port where requests name a QP, or a datagram service. */
	uint16_t (*qpn_port)(const struct eng_control *c);
};

extern const struct cm_kind cm_iwarp, cm_falcon;
extern const struct cm_kind *const cm_kinds[ENG_KINDS];

#endif
