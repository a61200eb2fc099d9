/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host: its engine, whose loop turns the gateway, too, a program of its own at 10.9.0.1, and
 * machines that tests add by command. A thread polls, another tends, as in saker.
 */
#ifndef SAKER_TEST_GATEWAY_HOST_H
#define SAKER_TEST_GATEWAY_HOST_H

#include "../../../drivers/gateway/gateway.h"
#include "rig.h"

#define HOST_ADDR "10.9.0.1"

struct host {
	struct eng_config cfg;
	struct gw *g;
	struct eng *e;
	struct rig rig; /* where the host's program is opened: prog_open_far() */
	void *home;
	int client;
	pthread_t poll, tend;
	bool stop;
};

extern struct host host;

/* `tweak` may change the configuration that the host's engine has and machines inherit; NULL. */
void host_start(void (*tweak)(struct eng_config *cfg));
/* Asserts that all mbufs came home. */
void host_end(void);
/* The threads rest, and go on. */
void host_pause(void);
void host_go(void);
/* What the command says; *rc its result. */
char *host_say(const char *line, int *rc);
/* What `vm show` says the switch has counted under that name. */
unsigned long long host_counted(const char *reason);

/* The gateway's part of a machine: gateway_priv.h. */
struct gw_vm *host_machine(const char *name);
/* What its engine has counted. */
uint64_t vm_counted(const char *name, const char *layer, const char *reason);

/* A machine with 16 MiB, two slots, 8 QPs and MRs; `keys` come behind. */
struct rig vm_add(const char *name, const char *keys);
/* Waits until nothing is left of it. */
void vm_del(struct rig *r, const char *name);

#endif
