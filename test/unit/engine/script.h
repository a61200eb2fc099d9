/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rig for the control stage alone. The transport stages and engine stages are scripts that a test
 * controls; by default they answer each command with 0. The client writes its commands into the
 * mailbox itself, so that a test can send commands that libsaker never sends. The rig needs no EAL,
 * and its clock is script.now.
 */
#ifndef TEST_ENGINE_SCRIPT_H
#define TEST_ENGINE_SCRIPT_H

#include "../../../lib/engine/control/control.h"
#include "../../../lib/shm/shm_ring.h"

#define SCRIPT_CLIENTS    4
#define SCRIPT_TRANSPORTS 2
#define SCRIPT_STAGES     2
#define SCRIPT_LOG        4096
#define SCRIPT_UNASKED    256
#define SCRIPT_IDS        256
#define SCRIPT_HOME       (4u << 20)
#define SCRIPT_MEM        (64u << 10)

struct ctl_client;

struct script {
	struct eng_config cfg;
	struct eng_control *control;
	struct rte_ring *to[SCRIPT_TRANSPORTS + SCRIPT_STAGES]; /* transports, then stages */
	struct rte_ring *from[SCRIPT_TRANSPORTS + SCRIPT_STAGES];
	struct rte_rcu_qsbr *rcu;
	struct rd_mr_table *mrs;
	int doorbells; /* the epoll set in which a loop would watch the doorbells of clients */
	uint64_t now;
	bool reader_busy; /* the loops pass no quiet point */
	/* Commands in the order in which they came. */
	struct eng_ctl log[SCRIPT_LOG];
	unsigned nlog;
	/* The stages do not answer commands of this type (enum eng_ctl_type; -1: none) until
	 * script_release(). */
	int hold;
	struct eng_ctl *held[64];
	unsigned nheld;
	/* The stages answer commands of this type with this status. */
	int fail, fail_status;
	uint32_t next_conn, next_index;
	/* Notices, and whether each is at the control stage. */
	struct eng_ctl unasked[SCRIPT_UNASKED];
	bool out[SCRIPT_UNASKED];
	int attached[SCRIPT_IDS], nattached; /* ids of the clients, in the order of attaching */
};

struct script *script_new(void (*tweak)(struct eng_config *cfg));
/* A tweak: Falcon is enabled. */
void script_falcon(struct eng_config *cfg);
/* Detaches all clients, asserts that no unit of any pool is held, and frees the rig. The home
 * regions of the clients still exist. */
void script_free(struct script *s);
/* Frees the rig only: for a test that has put objects into states that no message has caused. */
void script_destroy(struct script *s);
/* Runs one turn of the control stage and of the scripted stages. */
void script_turn(struct script *s);
void script_turns(struct script *s, unsigned n);
/* Returns the newest command of that type, or NULL. script_count() returns their number. */
const struct eng_ctl *script_last(const struct script *s, enum eng_ctl_type type);
unsigned script_count(const struct script *s, enum eng_ctl_type type);
/* Answers the held commands with `status`. */
void script_release(struct script *s, int status);
/* Returns a notice for the test to fill in. script_send() sends it to the control stage. */
struct eng_ctl *script_say(struct script *s, enum eng_ctl_type type);
void script_send(struct script *s, struct eng_ctl *m);
/* Returns the number of notices that have not returned. */
unsigned script_out(const struct script *s);
uint64_t script_counter(const struct script *s, enum eng_reason reason);

/* ---- A client that writes its mailbox itself ---- */

struct hand {
	struct script *s;
	uint8_t *home;
	int number;
	struct shm_header h; /* a copy of the home region's header */
	struct shm_prod cmd;
	struct shm_take evt;
	uint64_t tag;
};

void hand_attach(struct hand *c, struct script *s);
/* Attaches a client of that user. */
void hand_attach_as(struct hand *c, struct script *s, uint16_t user);
/* Returns the control stage's record of the client. */
struct ctl_client *hand_client(const struct hand *c);
void hand_free(struct hand *c);
/* Sends a command and does not wait for the reply. */
void hand_send(struct hand *c, struct shm_msg *m, enum shm_op op);
/* Receives the next message. Returns false when none comes. */
bool hand_next(struct hand *c, struct shm_msg *m);
/* Sends a command and waits for the reply, which replaces *m. Returns its status. */
int hand_do(struct hand *c, struct shm_msg *m, enum shm_op op);
/* Create or destroy an object, and assert success. */
uint32_t hand_pd(struct hand *c);
uint32_t hand_cq(struct hand *c);
struct shm_msg hand_qp(struct hand *c, uint32_t pd, uint32_t cq);
int hand_destroy(struct hand *c, enum shm_op op, uint32_t handle);
/* Creates a Falcon QP with a PD and a CQ of its own, asserts success, and returns its handle. */
uint32_t hand_falcon_qp(struct hand *c);
/* Sends SHM_QP_MODIFY to that state, with QP 77 of HAND_PEER as the peer and without PSP. Returns
 * its status. */
#define HAND_PEER "10.0.0.9"
int hand_move(struct hand *c, uint32_t qp, uint8_t state);

#endif
