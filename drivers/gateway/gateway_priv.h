/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the gateway share. */
#ifndef SAKER_GATEWAY_PRIV_H
#define SAKER_GATEWAY_PRIV_H

#include <pthread.h>

#include "doorbell.h"
#include "gateway.h"

#define GW_RING 1024 /* frames between the switch and an engine */

/* An engine's port: rings to the switch with an Ethernet device at the other end. */
struct gw_vport {
	struct rte_ring *in, *out; /* from and to the engine */
	uint16_t device;
	bool made;
	char name[48]; /* DPDK's */
	int port;      /* at the switch, or -1 */
};

struct gw_nic {
	bool made;
	uint16_t device;
	char name[48];
	int port;
};

enum gw_vm_state {
	GW_VM_UP,
	GW_VM_LEAVING,   /* its programs are being cut off */
	GW_VM_UNPLUGGED, /* waits until no turn can be using it */
};

struct gw_vm {
	struct gw_vm_config cfg;
	enum gw_vm_state state;
	unsigned number; /* 1..GW_VMS: the switch's tenant */
	struct eng *e;
	struct gw_bar *bar;
	struct gw_doorbell *doorbell; /* NULL: none */
	struct gw_vport vport;
	struct gw_nic nic;
	struct gw_claim claims[GW_ADDRS_MAX], nic_claims[GW_ADDRS_MAX];
	struct gw_tunnel *tunnel; /* shared; once unplugged, its to free */
	uint64_t since; /* ns: when it began to leave; the turn at which it was unplugged */
};

struct gw {
	struct gw_config cfg;
	pthread_mutex_t lock; /* vms[], never held by gw_poll() */
	struct rte_mempool *pool;
	struct gw_switch *sw;
	struct gw_vport host;
	uint8_t mac[6];
	struct gw_claim host_claims[ENG_MAX_IFS];
	bool host_claimed;
	bool uplink_started;
	int uplink_port;
	struct gw_vm *vms[GW_VMS];
	struct eng *engines[GW_VMS]; /* atomic: those that gw_poll() turns */
	uint32_t last;               /* atomic: engines from here on were never used */
	unsigned made;               /* makes names unique */
	struct gw_control *control;
};

/* vport.c. 0, or -errno with one sentence. `device_name`: behind "net_ring_"; NULL: a number's. */
int gw_vport_make(
	struct gw *g, struct gw_vport *v, const char *device_name, char *err, size_t errlen);
void gw_vport_free(struct gw_vport *v);
/* Configures and starts a device with one queue pair. *multi_seg: it takes frames in pieces. */
int gw_device_start(struct gw *g, uint16_t device, bool *multi_seg, char *err, size_t errlen);
int gw_nic_make(struct gw *g, struct gw_nic *n, const char *socket, bool *multi_seg, char *err,
	size_t errlen);
void gw_nic_free(struct gw_nic *n);

/* vm.c: fills in what was not said; 0, or -EINVAL with one sentence. */
int gw_vm_check(struct gw_vm_config *cfg, char *err, size_t errlen);
/* With the lock. On failure *out is what was made of it (or NULL): to be unplugged as any
 * other. */
int gw_vm_make(struct gw *g, unsigned number, const struct gw_vm_config *cfg, struct gw_vm **out,
	char *err, size_t errlen);
/* Nothing polls it, and it is no port of the switch any more. */
void gw_vm_free(struct gw_vm *vm);

/* identity.c: with the lock, but for the first. */
int gw_identity_check(const struct gw_vm_config *cfg, char *err, size_t errlen);
/* Fills in the function; 0, or -errno with one sentence: somebody has what is asked for. */
int gw_identity_settle(struct gw *g, struct gw_vm_config *cfg, char *err, size_t errlen);
void gw_identity_claims(struct gw_vm *vm);
/* The machine's tunnel, which may be there already: 0, or -errno with one sentence. */
int gw_identity_plug(struct gw *g, struct gw_vm *vm, char *err, size_t errlen);
/* Its ports are gone. */
void gw_identity_unplug(struct gw *g, struct gw_vm *vm);
/* Its engine's addresses stand in `c` already. */
void gw_identity_engine(const struct gw *g, const struct gw_vm *vm, struct eng_config *c);

/* control.c */
void gw_control_tend(struct gw *g, uint64_t now);
void gw_control_close(struct gw *g);

/* command.c */
void gw_show(struct gw *g, FILE *to);

#endif
