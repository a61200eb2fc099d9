/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client of an instance that writes its home region itself, without libsaker. It keeps what the
 * replies contain, so that its commands and requests can refer to objects that exist, and it writes
 * any bytes that the input chooses.
 */
#ifndef SAKER_FUZZ_ENGINE_CLIENT_H
#define SAKER_FUZZ_ENGINE_CLIENT_H

#include "../../../lib/shm/shm_ring.h"
#include "world.h"

#define CLIENTS     4
#define CLIENT_HOME (320u << 10)
#define CLIENT_MEM  (32u << 10) /* bytes of its own at the end of the home region */
#define CLIENT_BASE 0x100000u   /* address of the first byte of that memory in its requests */
#define THINGS      16          /* objects of one kind that a client remembers */

enum thing_kind {
	THING_PD,
	THING_MR,
	THING_MW,
	THING_CQ,
	THING_SRQ,
	THING_QP,
	THING_AH,
	THING_XRCD,
	THING_LISTENER,
	THING_REQUEST,
	THING_KINDS
};

/* An object, as the reply that created it describes it. */
struct thing {
	uint32_t handle;
	uint32_t number; /* QP number, number of an XRC SRQ, STag, port */
	uint8_t type, transport, stage;
	uint64_t at;            /* QPs and CQs: offset of the shared part */
	struct shm_prod sq, rq; /* entries is NULL where the object has no such queue */
	struct shm_take sub[2];
	unsigned nsubs;
	uint8_t log2_depth;
};

struct client {
	unsigned index;
	struct world *w;
	int side;   /* the instance */
	int number; /* at the instance; -1: not attached */
	bool deaf;  /* does not read its events */
	uint8_t *home;
	struct shm_header h; /* as the engine has written it */
	struct shm_prod cmd, bell[2];
	struct shm_take evt, cq_event[2];
	unsigned nstages;
	struct thing thing[THING_KINDS][THINGS];
	unsigned n[THING_KINDS];
};

/* Returns the client's own memory, CLIENT_MEM bytes. */
static inline uint8_t *
client_mem(const struct client *c)
{
	return c->home + CLIENT_HOME - CLIENT_MEM;
}

void client_attach(struct client *c, struct world *w, unsigned index);
/* Detaches the client. Its home region stays in use until the instance has freed the client. */
void client_detach(struct client *c);
/* Returns whether the client is attached or its instance still uses its home region. */
bool client_busy(const struct client *c);
/* Returns an object, or NULL if the client has none of that kind. */
struct thing *client_thing(struct client *c, enum thing_kind kind, unsigned index);
/* Returns its handle, or `index` itself. */
uint32_t client_handle(struct client *c, enum thing_kind kind, unsigned index);
/* Writes a command into the mailbox, with its tag, and rings. */
void client_command(struct client *c, struct shm_msg *m);
void client_ring(struct client *c, unsigned stage, uint32_t what);
/* Takes replies and events, and remembers the objects. */
void client_read(struct client *c);
/* Takes the completions of a CQ, and requests an event. */
void client_poll(struct client *c, unsigned cq, unsigned arm);
/* Fills in a command from the input: a valid one, if the objects that it names exist. */
void client_fill(struct client *c, struct client *other, struct fuzz_input *in, struct shm_msg *m);

#endif
