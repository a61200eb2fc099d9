/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of the connection manager that depends on the transport: each transport has a table of
 * functions. They translate a client's command into the transport's offer, and the transport's
 * outcome into a client's event.
 */
#ifndef SAKER_ENGINE_CM_KIND_PRIV_H
#define SAKER_ENGINE_CM_KIND_PRIV_H

#include "cm.h"

struct cm_kind {
	const char *name;                     /* in sentences to clients, for example "iWARP" */
	const struct sk_reason_list *reasons; /* of the errors of its QPs */
	bool modifiable; /* a program may connect its QPs with ibv_modify_qp() */

	/* Sets c->qp_types and the other members of `c` that depend on the transport, if it is
	 * enabled. */
	void (*configure)(struct eng_control *c);
	/* Fills in the transport's part of *out; the caller has set the depths. `q` is the
	 * connection, or NULL for a listener. `request` is the request that it accepts, or NULL.
	 * `m` is the client's command, or NULL for a QP modified by the program. Returns 0, or a
	 * refusal written to `m`. */
	int (*offer)(struct eng_control *c, const struct cm_conn *q,
		const struct cm_request *request, struct shm_msg *m, struct eng_offer *out);
	/* Fills in the part of the answer's offer that the request determines. */
	void (*request)(const struct eng_outcome *o, struct eng_offer *offer);
	/* Replaces the request in *o by the outcome of accepting it with `offer`. */
	void (*agree)(struct eng_outcome *o, const struct eng_offer *offer);
	/* Fills in the transport's part of the parameters with which the QP of `q` starts. */
	void (*start)(struct cm_conn *q, const struct eng_outcome *o, struct eng_start *start);
	/* Fills in the transport's part of a client's event about a connection. */
	void (*describe)(const struct eng_outcome *o, struct shm_cm *cm);
	/* Returns the maximum length (bytes) of the private data that an offer carries. */
	size_t (*private_max)(const struct eng_offer *offer);
	/* Returns the type (enum shm_qp_type) of the QP that can accept a request. */
	uint8_t (*request_type)(const struct eng_outcome *o);
	/* Returns whether a request names a QP by its number instead of a listener. */
	bool (*names_qp)(const struct eng_outcome *o);
	/* Returns the TCP port for requests that name a QP or a datagram service, or 0. */
	uint16_t (*qpn_port)(const struct eng_control *c);
};

extern const struct cm_kind cm_iwarp, cm_falcon;
extern const struct cm_kind *const cm_kinds[ENG_KINDS];

#endif
