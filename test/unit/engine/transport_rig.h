/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two transport stages, connected by rings, in virtual time. The test plays the control stage and
 * the engine stage of both. The program must be linked with fake_control.c.
 */
#ifndef TEST_ENGINE_TRANSPORT_RIG_H
#define TEST_ENGINE_TRANSPORT_RIG_H

#include "../../../lib/engine/stage/stage_priv.h"
#include "../../../lib/engine/transport/transport_priv.h"
#include "fake_control.h"
#include "pair.h"

#define PORT   4791
#define SIDE_A 0
#define SIDE_B 1

struct world {
	struct pair pair; /* the test calls pair_init() and pair_end() */
	uint64_t now;     /* ns */
	bool deaf;        /* side A receives no frames */
	bool still;       /* side B does not run */
	uint16_t user;    /* of the connections that A opens */
};

extern const struct eng_offer offer; /* the offer of both sides */

void world_start(struct world *w);
/* Runs one turn of both stages; 20 us pass. */
void turn(struct world *w);

/* ---- The control stage */

/* Sends a command to the transport stage of `side`. */
void command(struct world *w, int side, struct eng_ctl *m);
/* Sends a command and receives its answer. Fails the test if its status is not `status`. */
void do_command(struct world *w, int side, struct eng_ctl *m, int status);
/* Returns the next message to the control stage, or NULL when none arrives. */
struct eng_ctl *heard(struct world *w, int side);
/* Returns the next message to the control stage. Fails the test if its type is not `type`. */
struct eng_ctl *expect(struct world *w, int side, enum eng_ctl_type type);
void listen_at(struct world *w, int side);
/* Opens a connection to the address `to`, and returns its index. */
uint32_t connect_from(struct world *w, int side, const char *to);
/* Connect A to B in three steps: the request has arrived, B has accepted, both ends are bound. Set
 * conn[] to the indices of both ends. */
void request(struct world *w, uint32_t conn[2]);
void accept_request(struct world *w, const uint32_t conn[2]);
void take_reply(struct world *w, const uint32_t conn[2]);
/* Performs the three steps. */
void connect_both(struct world *w, uint32_t conn[2]);
/* Initializes and starts a world with the configuration of pair_init(), and connects A to B. */
void world_connect(struct world *w, uint32_t conn[2]);
/* Ends B's end in order, after A's FIN. */
void close_after_peer(struct world *w, const uint32_t conn[2]);
/* Connects A to B again, where B listens. */
void connect_again(struct world *w, uint32_t conn[2]);
/* Sends one step of a change from the configuration of the stage to `next`. Fails the test if its
 * status is not `status`. Returns the number of connections that end. */
uint32_t change_step(
	struct world *w, int side, uint8_t step, const struct eng_config *next, int status);

/* ---- The engine stage */

/* Sends a message to the transport stage of `side`. */
void say(struct world *w, int side, enum eng_to_transport type, uint32_t conn, void *ptr,
	uint32_t arg);
/* Receives the next message to the engine stage. Returns false when there is none. */
bool told(struct world *w, int side, struct eng_dmsg *m);
/* Returns the next message of type `type` to the engine stage. Skips ENG_E_SPACE and ENG_E_EMSS,
 * and fails the test at any other message. */
struct eng_dmsg expect_told(struct world *w, int side, enum eng_to_stage type);
/* Send, or receive and compare, `len` bytes with the values first, first + 1, and so on. */
void send_bytes(struct world *w, int side, uint32_t conn, uint8_t first, uint32_t len);
void expect_bytes(struct world *w, int side, uint32_t conn, uint8_t first, uint32_t len);
/* Closes both ends, and checks that no connection is left. */
void close_both(struct world *w, const uint32_t conn[2]);

#endif
