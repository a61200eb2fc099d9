/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host with a gateway: an engine whose loop also polls the gateway, a program of the host at
 * 10.9.0.1, and machines that tests add by command. One thread polls and another one tends, as in
 * saker.
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
	struct rig rig; /* argument of prog_open_far() for the host's program */
	void *home;
	int client;
	pthread_t poll, tend;
	bool stop;
};

extern struct host host;

/* Starts the host. `tweak` may change the configuration of the host's engine, which machines
 * inherit; NULL: no change. */
void host_start(void (*tweak)(struct eng_config *cfg));
/* Does the same with an uplink, a DPDK port. */
void host_start_at(int uplink, void (*tweak)(struct eng_config *cfg));
/* Ends the host, and asserts that all mbufs are back in their pools. */
void host_end(void);
/* Stops the two threads, and starts them again. */
void host_pause(void);
void host_go(void);
/* Executes "add NAME KEY=VALUE..." or "del NAME". Returns the output or the refusal, and the result
 * in *rc. */
char *host_say(const char *line, int *rc);
/* Returns the output of `show vms` in JSON. */
char *host_show(void);
/* Returns the switch's counter of that name, as `show vms` prints it. */
unsigned long long host_counted(const char *reason);

/* Returns the gateway's state of a machine (gateway_priv.h). */
struct gw_vm *host_machine(const char *name);
/* Returns the number of machines, including those that are being removed. */
unsigned host_vms(void);
/* Returns a counter of the machine's engine. */
uint64_t vm_counted(const char *name, const char *layer, const char *reason);

/* Adds a machine with 16 MiB, two slots, 8 QPs and 8 MRs, and with the further `keys`. */
struct rig vm_add(const char *name, const char *keys);
/* Removes a machine, and waits until the gateway has freed it. */
void vm_del(struct rig *r, const char *name);

#endif
