/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two transport stages over a ring, in virtual time: the test is the control stage and the engine
 * stage of both. fake_control.c is linked with it.
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
	struct pair pair; /* pair_init() is the test's, and pair_end() */
	uint64_t now;
	bool deaf; /* side A takes nothing in */
};

extern const struct eng_offer offer; /* of both sides */

void world_start(struct world *w);
/* 20 microseconds pass. */
void turn(struct world *w);

/* ---- As the control stage */

void command(struct world *w, int side, struct eng_ctl *m);
/* Gives a command and takes its answer, which must have that status. */
void do_command(struct world *w, int side, struct eng_ctl *m, int status);
/* The next message for the control stage; NULL when none comes. */
struct eng_ctl *heard(struct world *w, int side);
struct eng_ctl *expect(struct world *w, int side, enum eng_ctl_type type);
void listen_at(struct world *w, int side);
/* The index of the connection. */
uint32_t connect_from(struct world *w, int side, const char *to);
/* A connects to B, in three steps: up to the request, the acceptance, both ends bound. */
void request(struct world *w, uint32_t conn[2]);
void accept_request(struct world *w, const uint32_t conn[2]);
void take_reply(struct world *w, const uint32_t conn[2]);
/* All three. */
void connect_both(struct world *w, uint32_t conn[2]);

/* ---- As the engine stage */

void say(struct world *w, int side, enum eng_to_transport type, uint32_t conn, void *ptr,
	uint32_t arg);
/* What has been said to it; false: nothing. */
bool told(struct world *w, int side, struct eng_dmsg *m);
/* The next message to the engine stage of that type; others but E_SPACE and E_EMSS are wrong. */
struct eng_dmsg expect_told(struct world *w, int side, enum eng_to_stage type);
/* `len` bytes that count up from `first`. */
void send_bytes(struct world *w, int side, uint32_t conn, uint8_t first, uint32_t len);
void expect_bytes(struct world *w, int side, uint32_t conn, uint8_t first, uint32_t len);
/* Both end; no connection is left. */
void close_both(struct world *w, const uint32_t conn[2]);

#endif
