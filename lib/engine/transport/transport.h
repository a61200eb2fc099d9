/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface of a transport stage for the assembly. A stage has one queue of each port, a net
 * stack, a TCP stack, and the connections of all transports. All functions of a stage run on the
 * loop that polls it, except where a comment allows any thread. Times are in ns.
 */
#ifndef SAKER_ENGINE_TRANSPORT_H
#define SAKER_ENGINE_TRANSPORT_H

#include "../common/instance.h"

/* ---- transport.c ---- */

/* Returns a new stage with its pools and stacks, which uses the rings of e->rings, or NULL with a
 * sentence in `err`. Its timers count from `now`. */
struct eng_transport *eng_transport_create(
	struct eng *e, unsigned index, uint64_t now, char *err, size_t errlen);
/* Adds the configured addresses and routes. The ports must run and have their MAC addresses.
 * Returns 0, or -errno with a sentence in `err`. */
int eng_transport_start(struct eng_transport *t, uint64_t now, char *err, size_t errlen);
/* Frees the stage and its connections without sending a packet. A pool is freed when all of its
 * mbufs are back in it. `t` may be NULL. */
void eng_transport_destroy(struct eng_transport *t);
/* The first half of a turn: receives frames and sends their contents to the engine stages. Returns
 * whether there was work. */
bool eng_transport_rx(struct eng_transport *t, uint64_t now);
/* The second half of a turn: handles the messages of the engine stages and the commands of the
 * control stage, runs timers, and sends frames. Returns whether there was work. */
bool eng_transport_tx(struct eng_transport *t, uint64_t now);
/* Returns whether the last turn may have ended with packets that only wait for their turn or, over
 * Falcon, for room at the port. */
bool eng_transport_unsent(const struct eng_transport *t);
/* Returns the time at which the stage has to be polled although nothing arrives; 0: immediately.
 * Frames that a port does not accept have no time: see eng_transport_refused(). */
uint64_t eng_transport_deadline(const struct eng_transport *t);
/* Returns whether a port has not accepted all frames. Nothing reports when it would, so the loop
 * has to try again. */
bool eng_transport_refused(const struct eng_transport *t);
/* Returns the stage's counters of `list`, [list->count], or NULL when it has none. Any thread may
 * read them, with relaxed atomic loads. */
const uint64_t *eng_transport_counters(
	const struct eng_transport *t, const struct sk_reason_list *list);
/* Adds the stage's connections and mbufs to *out. Any thread. */
void eng_transport_totals(const struct eng_transport *t, struct eng_totals *out);
/* Returns the bytes of memory that an idle connection needs on this stage, those of lib/tcp
 * included. */
size_t eng_transport_conn_size(void);

/* Takes note that the loop has slept until the time `until`, while the interrupts of all receive
 * queues of the stage were enabled. A frame would have ended the sleep, so that it is neither a
 * stop of the loop nor a backlog at the ports. */
void eng_transport_slept(struct eng_transport *t, uint64_t until);

/* ---- falcon/falcon.c ---- */

/* Adds the stage's Falcon connections to *out. `now` is the time of the device key's age. Any
 * thread. */
void eng_transport_falcon(const struct eng_transport *t, uint64_t now, struct eng_falcon_view *out);

/* ---- port.c ---- */

/* Configures and starts port `i`, with a receive and a send queue for each transport stage, or with
 * as many as the port has. A receive queue uses the rx_pool of its stage. Returns 0, or -errno with
 * a sentence in `err`. */
int eng_port_start(struct eng *e, unsigned i, char *err, size_t errlen);
/* Configures and starts port `i`, whose p->dev.id is set, for eng_port_start() and
 * eng_port_attach(). */
int eng_port_open(struct eng *e, unsigned i, char *err, size_t errlen);
/* Stops port `i` and frees the frames in its receive queues. */
void eng_port_stop(struct eng *e, unsigned i);

/* ---- port_remove.c ---- */

/* Stops and closes the device of port `i`, which was removed and which no stage uses any more. */
void eng_port_release(struct eng *e, unsigned i);

/* ---- home.c ---- */

/* Draws e->rss_key. Of all keys, those are excluded with which eng_home_rports() would find no port
 * for some stage. */
void eng_home_key(struct eng *e);

/* ---- port_intr.c ---- */

/* The `data.u64` of a receive interrupt in an epoll set. */
#define ENG_EPOLL_PORT 1

/* Takes the receive interrupts of port `i` into use, which was configured for them and runs.
 * Returns false when its driver has none, or memory is exhausted. */
bool eng_intr_open(struct eng *e, unsigned i);
/* Releases the interrupts, before the port stops. */
void eng_intr_close(struct eng *e, unsigned i);
/* Enables the interrupts of the stage's receive queues, and adds their descriptors to the epoll set
 * `epoll_fd`, which is the same at each call. Returns whether all receive queues of the stage have
 * interrupts, so that each frame ends a sleep; frames that have arrived before do not. */
bool eng_transport_arm(struct eng_transport *t, int epoll_fd);
/* Disables the interrupts again. */
void eng_transport_disarm(struct eng_transport *t);

/* ---- handoff.c ---- */

/* Creates the rings between the transport stages, and the lanes of the ports, which must have been
 * started. An instance with one transport stage has none. Returns 0 or -ENOMEM. */
int eng_handoff_create(struct eng *e);
/* Frees the rings, the lanes, and the frames in them. */
void eng_handoff_destroy(struct eng *e);

#endif
