/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients that harm saker or their neighbours, each by one means. They take what saker gives them:
 * a refusal is no error. Each prints "ready" when its preparations are complete, continues until
 * SIGTERM, and then prints what it did.
 */
#ifndef TEST_HOSTILE_H
#define TEST_HOSTILE_H

#include <sys/types.h>

#include "../support/raw_client.h"

struct hostile {
	struct raw_client c;
	const char *where; /* as for raw_attach() */
	const char *addr;  /* an address of saker's, or NULL */
	uint32_t number;   /* how much: the attack defines it; 0: its default */
	uint16_t port;
	uid_t user; /* whose share its clients use */
	bool attached;
	uint64_t done, refused; /* what happened after "ready" */
};

extern volatile bool hostile_stop; /* set by SIGTERM, or by the victim at the end of an attack */
/* Called by hostile_ready() instead of printing if it is not NULL. */
extern void (*hostile_on_ready)(const char *what, uint64_t n);

/* Attaches a client of the user, and prints why it cannot. */
int hostile_attach(const struct hostile *h, struct raw_client *c);
/* Runs the attack of this name until hostile_stop. Returns its status, or -ENOENT without such an
 * attack. */
int hostile_run(struct hostile *h, const char *name);
/* Prints the names of the attacks on stderr. */
void hostile_names(void);
/* Prints "ready". */
void hostile_ready(const char *what, uint64_t n);
/* Sleeps for some microseconds, and keeps a machine's slot. */
void hostile_rest(struct hostile *h, unsigned us);
/* Rests until SIGTERM. Returns 0. */
int hostile_sleep(struct hostile *h);
/* Connects a QP of the client to another one of it. Returns 0 or -errno. */
int hostile_self(struct hostile *h, const struct raw_qp *a, const struct raw_qp *b);

/* The attacks. Each returns 0, or -errno if it cannot be prepared. */
int attack_owed(struct hostile *h);
int attack_hog_qps(struct hostile *h);
int attack_hog_cqs(struct hostile *h);
int attack_hog_pds(struct hostile *h);
int attack_hog_listeners(struct hostile *h);
int attack_hog_clients(struct hostile *h);
int attack_deep_cqs(struct hostile *h);
int attack_deep_qps(struct hostile *h);
int attack_qp_open(struct hostile *h);
int attack_rhythm(struct hostile *h);
int attack_wakes(struct hostile *h);
int attack_mailbox_valid(struct hostile *h);
int attack_mailbox_invalid(struct hostile *h);
int attack_doorbell_valid(struct hostile *h);
int attack_doorbell_invalid(struct hostile *h);
int attack_doorbell_empty(struct hostile *h);
int attack_punch(struct hostile *h);
int attack_regions(struct hostile *h);
int attack_regions_refused(struct hostile *h);
int attack_busy(struct hostile *h);
int attack_accept(struct hostile *h);
int attack_send(struct hostile *h);
int attack_pulls_kept(struct hostile *h);
int attack_pulls_excess(struct hostile *h);
int attack_frames(struct hostile *h);
int attack_chaos(struct hostile *h);
int attack_churn(struct hostile *h);

/* The share of two clients: `hostile share`. Prints the rates. */
int share_main(int argc, char **argv);

#endif
