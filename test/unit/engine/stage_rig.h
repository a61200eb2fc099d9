/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine stage alone, in virtual time. The test is its clients, its transport stages and the
 * control stage. The QPs of the rig have functions of the test instead of a transport's.
 */
#ifndef TEST_ENGINE_STAGE_RIG_H
#define TEST_ENGINE_STAGE_RIG_H

#include "../../../lib/engine/stage/qp_ops_priv.h"

#define RIG_EVENTS    64   /* entries of a client's event ring */
#define RIG_DOORBELLS 1024 /* entries of its doorbell ring */
#define RIG_STORE     1024 /* send mbufs */

struct stage_rig {
	struct eng *e;
	struct eng_stage *s;
	uint64_t now;
	bool unsent; /* the argument of eng_stage_poll() */
	struct eng_ctl command;
	/* The rates of the users of all further clients. */
	struct eng_rates user_rates;
};

struct hidden;

/* A client, its half of the rings, and its QPs. */
struct stage_client {
	struct eng_client *c;
	struct hidden *hidden; /* holds `c`; NULL: the heap does */
	uint8_t *home;
	struct shm_prod doorbell;
	struct shm_take event;
};

/* The objects of a test in pages of their own. While they are hidden, each access to one of them
 * ends the test. */
struct hidden {
	void *at;
	size_t bytes;
};

/* Creates the stage. `tweak` may change the configuration; it may be NULL. */
void stage_rig_start(struct stage_rig *r, void (*tweak)(struct eng_config *cfg));
/* Destroys the stage, and checks that all mbufs are back. */
void stage_rig_end(struct stage_rig *r);
/* Runs a turn, after `ns` nanoseconds. */
void stage_rig_turn(struct stage_rig *r, uint64_t ns);
/* Sends a command to the stage, and checks that it is answered with 0. */
void stage_rig_command(
	struct stage_rig *r, enum eng_ctl_type type, struct eng_client *client, void *object);
/* Returns the next message to the control stage, or NULL. stage_rig_return() returns a notice. */
struct eng_ctl *stage_rig_notice(struct stage_rig *r);
void stage_rig_return(struct stage_rig *r, struct eng_ctl *m);
/* Receives the next message to the transport stage. Returns false when there is none. */
bool stage_rig_message(struct stage_rig *r, struct eng_dmsg *m);

void stage_client_add(
	struct stage_rig *r, struct stage_client *c, uint16_t user, const struct eng_rates *rates);
/* As stage_client_add(), with the client in pages of its own, which stage_client_del() frees. */
void stage_client_add_hidden(
	struct stage_rig *r, struct stage_client *c, uint16_t user, struct hidden *h);
void stage_client_del(struct stage_rig *r, struct stage_client *c);
void stage_client_ring(struct stage_client *c, uint32_t what);
/* Takes up to `n` events. Returns their number. */
unsigned stage_client_events(struct stage_client *c, unsigned n);

void *hidden_alloc(struct hidden *h, size_t bytes);
void hidden_hide(const struct hidden *h, bool hide);
void hidden_free(struct hidden *h);

/* Members of a test's struct eng_qp_ops: a QP without counters, whose connection was open. */
void stage_qp_info(const struct eng_qp *qp, struct eng_work *out);
bool stage_qp_opened(const struct eng_qp *qp);
/* The functions of a QP that never has work. */
extern const struct eng_qp_ops stage_qp_quiet;
/* Makes a connected QP in *qp, which the caller has zeroed. */
void stage_qp_make(
	struct eng_qp *qp, struct stage_client *c, const struct eng_qp_ops *ops, void *control);

#endif
