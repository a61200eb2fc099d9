/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control stage alone: transport and engine stages that do as a test says (by default they say
 * yes to everything), and a client that speaks through the mailbox by hand, so that it can say what
 * libsaker never would. No EAL, no clock.
 */
#ifndef TEST_ENGINE_SCRIPT_H
#define TEST_ENGINE_SCRIPT_H

#include "../../../lib/engine/control/control.h"
#include "../../../lib/shm/shm_ring.h"

#define SCRIPT_CLIENTS    4
#define SCRIPT_TRANSPORTS 2
#define SCRIPT_STAGES     2
#define SCRIPT_LOG        4096
#define SCRIPT_UNASKED    64
#define SCRIPT_HOME       (4u << 20)
#define SCRIPT_MEM        (64u << 10)

struct script {
	struct eng_config cfg;
	struct eng_control *control;
	struct rte_ring *to[SCRIPT_TRANSPORTS + SCRIPT_STAGES]; /* transports, then stages */
	struct rte_ring *from[SCRIPT_TRANSPORTS + SCRIPT_STAGES];
	struct rte_rcu_qsbr *rcu;
	struct rd_mr_table *mrs;
	uint64_t now;
	bool reader_busy; /* the loops' reader does not become quiet */
	/* Commands as they came, oldest first. */
	struct eng_ctl log[SCRIPT_LOG];
	unsigned nlog;
	/* Commands of this type are kept (enum eng_ctl_type; -1: none) until script_release(). */
	int hold;
	struct eng_ctl *held[64];
	unsigned nheld;
	/* Commands of this type fail so. */
	int fail, fail_status;
	uint32_t next_conn, next_index;
	/* Unasked messages. */
	struct eng_ctl unasked[SCRIPT_UNASKED];
	bool out[SCRIPT_UNASKED];
};

struct script *script_new(void (*tweak)(struct eng_config *cfg));
void script_free(struct script *s);
/* One turn of the control stage and of the scripted ones. */
void script_turn(struct script *s);
void script_turns(struct script *s, unsigned n);
/* The newest command of that type, or NULL; how many there were. */
const struct eng_ctl *script_last(const struct script *s, enum eng_ctl_type type);
unsigned script_count(const struct script *s, enum eng_ctl_type type);
/* Answers what was held, with `status`. */
void script_release(struct script *s, int status);
/* A stage's own message to fill in, and its way to the control stage. */
struct eng_ctl *script_say(struct script *s, enum eng_ctl_type type);
void script_send(struct script *s, struct eng_ctl *m);
/* Messages of the stages that are not back. */
unsigned script_out(const struct script *s);
uint64_t script_counter(const struct script *s, enum eng_reason reason);

/* ---- A client by hand ---- */

struct hand {
	struct script *s;
	uint8_t *home;
	int number;
	struct shm_header h; /* a copy */
	struct shm_prod cmd;
	struct shm_take evt;
	uint64_t tag;
};

void hand_attach(struct hand *c, struct script *s);
void hand_free(struct hand *c);
/* Sends without waiting. */
void hand_send(struct hand *c, struct shm_msg *m, enum shm_op op);
/* The next message, or false when none comes. */
bool hand_next(struct hand *c, struct shm_msg *m);
/* Sends and waits; *m becomes the reply. Its status. */
int hand_do(struct hand *c, struct shm_msg *m, enum shm_op op);
/* Shorthands; each asserts success. */
uint32_t hand_pd(struct hand *c);
uint32_t hand_cq(struct hand *c);
struct shm_msg hand_qp(struct hand *c, uint32_t pd, uint32_t cq);
int hand_destroy(struct hand *c, enum shm_op op, uint32_t handle);

#endif
