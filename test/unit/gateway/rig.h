/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two engines joined by rings. Instance 0 serves a machine's shared memory, and the tests are the
 * machine's programs. A thread runs the engines and polls the memory, so that the tests may block
 * as programs do.
 */
#ifndef SAKER_TEST_GATEWAY_RIG_H
#define SAKER_TEST_GATEWAY_RIG_H

#include <pthread.h>

#include <saker/saker.h>

#include "../../../drivers/gateway/bar.h"
#include "../engine/pair.h"

#define RIG_SIZE    (16u << 20)
#define RIG_SLOTS   3
#define RIG_TIMEOUT 1000 /* ms */
#define RIG_BYTES   65536
#define RIG_PORT    7000

struct rig {
	struct pair pair;
	struct gw_bar *bar;
	char path[64];  /* of the memory file */
	char where[80]; /* the address that a program passes to saker_open() */
	pthread_t thread;
	bool stop;
	void *home; /* of the client of instance 1 */
	int client;
};

void rig_start(struct rig *r);
/* Stops the thread, so that the test can poll by itself; rig_go() starts it again. */
void rig_pause(struct rig *r);
void rig_go(struct rig *r);
void rig_end(struct rig *r);
struct gw_bar_view rig_look(const struct rig *r);
/* Waits until instance `i` has `clients` clients. */
void rig_clients(struct rig *r, int i, uint32_t clients);

/* A program with the objects of one connection. */
struct prog {
	struct saker *s;
	struct saker_pd *pd;
	struct saker_cq *cq;
	struct saker_qp *qp;
	struct saker_mr *mr;
	uint8_t *mem; /* RIG_BYTES */
};
/* Opens a program of the machine. */
void prog_open(struct rig *r, struct prog *p);
/* Opens a program at instance 1. */
void prog_open_far(struct rig *r, struct prog *p);
void prog_close(struct prog *p);
/* Destroys the program's QP and creates another one. */
void prog_more_qp(struct prog *p);
/* Connects `from` to `to`, which listens at `addr`. */
void prog_connect(struct prog *from, struct prog *to, const char *remote, uint16_t port);
/* Writes all memory of `from` to that of `to`, `n` times, and verifies each Write. */
void prog_write(struct prog *from, struct prog *to, unsigned n);
struct saker_event prog_event(struct prog *p, enum saker_event_type type);

#endif
