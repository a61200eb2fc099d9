/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine stage as the assembly uses it: the QPs whose home it is, DDP and RDMAP or RDMA over
 * Falcon for them, their clients' doorbells, and the completion sub-rings that it produces into.
 * All functions run on the loop that polls the stage, except where a comment says otherwise.
 */
#ifndef SAKER_ENGINE_STAGE_H
#define SAKER_ENGINE_STAGE_H

#include "../common/instance.h"

/* Returns a stage on the rings of e->rings; or NULL with one sentence in `err`. */
struct eng_stage *eng_stage_create(struct eng *e, unsigned index, char *err, size_t errlen);
/* Frees the stage with its QPs. NULL is allowed. */
void eng_stage_destroy(struct eng_stage *s);
/* One turn. Returns whether there was work. */
bool eng_stage_poll(struct eng_stage *s, uint64_t now);
/* Returns whether there is work to do although nothing arrives. */
bool eng_stage_busy(const struct eng_stage *s);
/* Polls the doorbell rings of all clients, also of quiet ones: before a loop goes to sleep. Returns
 * whether one had an entry. */
bool eng_stage_rung(struct eng_stage *s);
/* Shows the stage's clients whether loop `loop` sleeps, so that a doorbell needs a wake-up, too. */
void eng_stage_show_sleep(struct eng_stage *s, unsigned loop, bool sleeps);
/* Returns the stage's counters of that list, [list->count], or NULL when it has none. Any thread
 * may read them, relaxed. */
const uint64_t *eng_stage_counters(const struct eng_stage *s, const struct sk_reason_list *list);
/* Adds the messages and bytes of the stage's QPs, and its mbufs, to *out. Any thread. */
void eng_stage_totals(const struct eng_stage *s, struct eng_totals *out);

#endif
