/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A transport stage as the assembly uses it: one queue of each port, a net stack, a TCP stack, and
 * the connections of every transport on them. All functions that name a stage run on the loop that
 * polls it, except where a comment says otherwise.
 */
#ifndef SAKER_ENGINE_TRANSPORT_H
#define SAKER_ENGINE_TRANSPORT_H

#include "../common/instance.h"

/* ---- transport.c ---- */

/* Returns a stage with its pools and stacks, on the rings of e->rings; or NULL with one sentence in
 * `err`. `now` is the time, ns, from which its timers count. */
struct eng_transport *eng_transport_create(
	struct eng *e, unsigned index, uint64_t now, char *err, size_t errlen);
/* Adds the configured addresses and routes, once the ports run and their MAC addresses are known.
 * Returns 0, or -errno with one sentence in `err`. */
int eng_transport_start(struct eng_transport *t, uint64_t now, char *err, size_t errlen);
/* Ends all connections without a packet. The stage's pools are freed when their last mbuf has come
 * home. NULL is allowed. */
void eng_transport_destroy(struct eng_transport *t);
/* First half of a turn: receives, and passes what came to the engine stages. Returns whether there
 * was work. */
bool eng_transport_rx(struct eng_transport *t, uint64_t now);
/* Second half: takes what the engine stages have queued, runs the transports' timers, sends. */
bool eng_transport_tx(struct eng_transport *t, uint64_t now);
/* Returns when the stage has to be polled although nothing arrives, ns; 0: immediately. */
uint64_t eng_transport_deadline(const struct eng_transport *t);
/* Returns the stage's counters of that list, [list->count], or NULL when it has none. Any thread
 * may read them, relaxed. */
const uint64_t *eng_transport_counters(
	const struct eng_transport *t, const struct sk_reason_list *list);
/* Adds the stage's connections and mbufs to *out. Any thread. */
void eng_transport_totals(const struct eng_transport *t, struct eng_totals *out);
/* Returns the private bytes of an idle connection on this stage, TCP's part included. */
size_t eng_transport_conn_size(void);

/* ---- port.c ---- */

/* Configures and starts port `i`: a queue pair per transport stage as far as the port has them,
 * with the stage's pool for what arrives. Returns 0, or -errno with one sentence in `err`. */
int eng_port_start(struct eng *e, unsigned i, char *err, size_t errlen);
/* Stops the port and frees the frames that wait in its receive queues. */
void eng_port_stop(struct eng *e, unsigned i);

/* ---- handoff.c ---- */

/* Creates the rings between transport stages and the lanes of the ports, which are started. With
 * one stage there are none. Returns 0 or -ENOMEM. */
int eng_handoff_create(struct eng *e);
/* Frees what lies in the rings, and the rings. */
void eng_handoff_destroy(struct eng *e);

#endif
