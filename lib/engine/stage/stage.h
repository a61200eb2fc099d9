/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface of an engine stage to the assembly. An engine stage owns QPs: it polls the
 * doorbells of their clients, runs DDP and RDMAP or RDMA over Falcon for them, and writes their
 * completions. It is connected with the transport stages and the control stage by the rings in
 * e->rings. Only the loop that polls the stage calls these functions, except where a comment
 * permits any thread.
 */
#ifndef SAKER_ENGINE_STAGE_H
#define SAKER_ENGINE_STAGE_H

#include "../common/instance.h"

/* Returns engine stage `index` of `e`, which eng_stage_destroy() frees; or NULL, with one sentence
 * in `err`, when memory is exhausted. */
struct eng_stage *eng_stage_create(struct eng *e, unsigned index, char *err, size_t errlen);
/* Frees the stage, the transport's parts of its QPs, and the messages in its rings. The control
 * stage frees struct eng_qp. NULL is allowed. */
void eng_stage_destroy(struct eng_stage *s);
/* Runs one turn: messages of the transport stages, doorbells, commands, QPs with work, then
 * whatever is pending. `now` in ns. `unsent`: a transport stage of the same loop has frames that it
 * has not sent. The stage then serves few QPs: requests wait in the queues of their clients, and
 * not as records that have left the processor's caches when they are sent. Returns whether there
 * was work. */
bool eng_stage_poll(struct eng_stage *s, uint64_t now, bool unsent);
/* Returns the time (ns) at which the stage has work although nothing arrives: 0 when it has work
 * now, SK_NEVER when it has none. Its loop does not sleep beyond that time. Two kinds of work wait
 * for others and do not count: events for which a client makes no room, and QPs for whose records
 * the transport stage waits. The stage checks them in each turn. */
uint64_t eng_stage_deadline(const struct eng_stage *s);
/* Returns whether the doorbell ring of any client has an entry, cold clients included. A loop calls
 * it before it sleeps. */
bool eng_stage_rung(struct eng_stage *s);
/* Shows all clients of the stage whether loop `loop` sleeps. While it sleeps, a doorbell requires a
 * wake-up, too. */
void eng_stage_show_sleep(struct eng_stage *s, unsigned loop, bool sleeps);
/* Returns the stage's counters for a list of reasons: an array of list->count elements that the
 * stage owns; or NULL when it counts none of them. Any thread may read them, relaxed. */
const uint64_t *eng_stage_counters(const struct eng_stage *s, const struct sk_reason_list *list);
/* Returns the latencies of the requests of one transport (enum eng_kind), which the stage owns. Any
 * thread may read them, relaxed. */
const struct rd_latency *eng_stage_latency(const struct eng_stage *s, unsigned kind);
/* Adds the messages and bytes of all QPs since the start, and the stage's mbufs, to *out. Those of
 * the last turns may be missing; no number ever falls. Callable from any thread. */
void eng_stage_totals(const struct eng_stage *s, struct eng_totals *out);

#endif
