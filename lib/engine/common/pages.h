/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread that fetches missing pages of clients' memory, so that no loop allocates or waits. The
 * engine stages pass requests to it and take them back; nothing blocks a stage. The thread serves
 * the clients in turn, one request of each, and a request has a limit (eng_fetch()), so that a
 * client with many requests delays only itself.
 */
#ifndef SAKER_ENGINE_PAGES_H
#define SAKER_ENGINE_PAGES_H

#include "../../base/wheel.h"
#include "instance.h"

/* A request. It belongs to its stage, and from eng_pages_submit() to eng_pages_done() to the
 * thread. While `timer` is set, the stage submits it later. */
struct eng_fetch_req {
	const uint8_t *at;
	uint64_t len;    /* bytes */
	uint64_t guard;  /* eng_guard_name(at): another mapping may follow at the address */
	uint32_t client; /* client number: the turn */
	uint32_t number; /* constant: its place among the requests of the stage */
	uint8_t stage;   /* constant */
	bool busy;       /* the thread has it; only the stage uses this field */
	struct eng_fetch_req *next;
	struct sk_timer timer;
};

/* Creates `requests` requests for each of `nstages` stages, and their rings, without the thread.
 * wake(arg, stage) wakes the loop of a stage; any thread calls it. Returns NULL when memory is
 * exhausted. */
struct eng_pages *eng_pages_create(const struct eng *e, unsigned nstages, uint32_t requests,
	void (*wake)(void *arg, unsigned stage), void *arg);
/* Stops the thread. Requests that it holds are forgotten. NULL is allowed. */
void eng_pages_destroy(struct eng_pages *p);
/* Starts the thread if it does not run yet, on an lcore that no loop uses if there is one. It must
 * run before memory is watched. One thread at a time. Returns 0 or -errno. */
int eng_pages_start(struct eng_pages *p);
/* Returns request `number` of a stage. */
struct eng_fetch_req *eng_pages_req(struct eng_pages *p, unsigned stage, uint32_t number);
/* Passes a request that is not busy to the thread. Only the loop of the stage calls it. */
void eng_pages_submit(struct eng_pages *p, struct eng_fetch_req *r);
/* Returns whether requests of the stage are done. */
bool eng_pages_any(const struct eng_pages *p, unsigned stage);
/* Returns a request that is done, or NULL. Only the loop of the stage calls it. */
struct eng_fetch_req *eng_pages_done(struct eng_pages *p, unsigned stage);

#endif
