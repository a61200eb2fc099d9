/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The steps of the programs that the fuzz targets of the engine take as inputs. Each step has a
 * byte for its kind and a byte for its clients; seeds.py has the operands. FUZZ_TRACE=1 prints the
 * steps.
 */
#ifndef SAKER_FUZZ_ENGINE_STEPS_H
#define SAKER_FUZZ_ENGINE_STEPS_H

#include "client.h"

enum step {
	STEP_COMMAND,
	STEP_BASICS,
	STEP_CONNECT,
	STEP_PAIR,
	STEP_DATAGRAMS,
	STEP_XRC,
	STEP_SEND,
	STEP_RECEIVE,
	STEP_POLL,
	STEP_SCRIBBLE,
	STEP_TURNS,
	STEP_TIME,
	STEP_FATES,
	STEP_FRAME,
	STEP_REPLAY,
	STEP_LEAVE,
	STEP_BELL,
	STEP_DEAF,
	STEP_RAW,
	STEP_ENGINE_KINDS,              /* those of the target `engine` */
	STEP_BURST = STEP_ENGINE_KINDS, /* of the target `fast`, too */
	STEP_KINDS
};

/* Runs a program in this world, which is the current one, without clients at first. A kind is a
 * byte modulo `kinds`. */
void steps_run(struct world *w, struct fuzz_input *in, unsigned kinds);
/* Calls `each` for every client that is attached. */
void steps_each(void (*each)(struct client *c));
/* Detaches all clients, and waits until the instances are as before them (world_settle()). */
void steps_end(void);

#endif
