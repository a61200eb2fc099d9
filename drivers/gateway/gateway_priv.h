/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The gateway's state, and the functions that its files offer each other. Calls go downward:
 * gateway.c (assembly), command.c (commands), machines.c (the set of machines), vm.c (one machine),
 * identity.c (addresses and tunnels), uplink.c (the wire), vport.c (devices).
 */
#ifndef SAKER_GATEWAY_PRIV_H
#define SAKER_GATEWAY_PRIV_H

#include <pthread.h>

#include "../../lib/engine/device.h"
#include "doorbell.h"
#include "gateway.h"
#include "tunnel.h"

#define GW_RING 1024 /* frames between the switch and an engine */

/* An engine's port: an Ethernet device whose two queues are rings to and from the switch. */
struct gw_vport {
	struct rte_ring *in, *out; /* from and to the engine */
	uint16_t device;
	bool made;
	char name[48]; /* of the DPDK device */
	int port;      /* of the switch, or -1 */
};

/* A machine's network card: a vhost-user device. */
struct gw_nic {
	bool made;
	uint16_t device;
	char name[48]; /* of the DPDK device */
	int port;      /* of the switch, or -1 */
};

enum gw_vm_state {
	GW_VM_UP,
	GW_VM_LEAVING,   /* its programs are being detached */
	GW_VM_UNPLUGGED, /* not polled any more; freed when no turn can be using it */
};

struct gw_vm {
	struct gw_vm_config cfg;
	enum gw_vm_state state;
	unsigned number; /* 1..GW_VMS: its tenant number at the switch */
	struct eng *e;
	struct gw_bar *bar;
	struct gw_doorbell *doorbell; /* NULL: none */
	struct gw_vport vport;
	struct gw_nic nic;
	struct gw_claim claims[GW_ADDRS_MAX], nic_claims[GW_ADDRS_MAX];
	struct gw_tunnel *tunnel; /* shared; the last machine to be unplugged frees it */
	/* GW_VM_LEAVING: ns, when the removal began. GW_VM_UNPLUGGED: the number of turns that the
	 * switch had run then. */
	uint64_t since;
};

/* The device by which the switch reaches the wire. Protected by the lock, but for dev.gone. */
struct gw_uplink {
	struct eng_device dev;
	bool started;
	int port;         /* of the switch, or -1 */
	uint64_t look_at; /* ns: the next eng_device_look() */
	bool leaving;     /* dev.gone was seen ... */
	uint64_t since;   /* ... when the switch had run so many turns */
};

struct gw {
	struct gw_config cfg;
	pthread_mutex_t lock; /* protects vms[] and uplink; gw_poll() never takes it */
	struct rte_mempool *pool;
	struct gw_switch *sw;
	struct gw_vport host;
	uint8_t mac[6]; /* of the host's engine */
	/* The host's addresses: those that the switch reads, and the ones before or after them. */
	struct gw_claim host_claims[2][ENG_MAX_IFS];
	unsigned host_nclaims, host_side; /* number, and first index of those that it reads */
	struct gw_uplink uplink;
	struct gw_vm *vms[GW_VMS];
	struct eng *engines[GW_VMS]; /* atomic: the engines that gw_poll() runs */
	uint32_t last;               /* atomic: entries of `engines` from here on were never used */
	unsigned made;               /* counts devices, for unique names */
};

/* ---- gateway.c ---- */

/* Returns whether no turn can be using what the switch and the engines did not have any more when
 * the switch had run `since` turns: the turn that was running then and the next one have ended, or
 * no thread polls. */
bool gw_quiet(const struct gw *g, uint64_t since);

/* ---- uplink.c ---- */

/* Starts the uplink, if there is one, and adds it to the switch. The host's MAC address becomes its
 * own. Returns 0, or -errno with one sentence in `err`. */
int gw_uplink_start(struct gw *g, char *err, size_t errlen);
/* Stops the uplink. No thread polls any more. */
void gw_uplink_stop(struct gw *g);
/* Looks after the uplink once a second. The caller holds the lock. */
void gw_uplink_tend(struct gw *g, uint64_t now);

/* ---- vport.c: devices ---- */

/* Creates an engine's port named "net_ring_" and `device_name`; NULL: a numbered name. Returns 0,
 * or -errno with one sentence in `err`. */
int gw_vport_make(
	struct gw *g, struct gw_vport *v, const char *device_name, char *err, size_t errlen);
/* Frees the device and the rings. The engine has stopped the device. */
void gw_vport_free(struct gw_vport *v);
/* Configures and starts a device with one queue pair. Stores in *multi_seg whether it sends frames
 * of several segments. Returns 0, or -errno with one sentence in `err`. */
int gw_device_start(struct gw *g, uint16_t device, bool *multi_seg, char *err, size_t errlen);
/* Creates and starts a vhost-user device at the path `socket`; otherwise as gw_device_start(). */
int gw_nic_make(struct gw *g, struct gw_nic *n, const char *socket, bool *multi_seg, char *err,
	size_t errlen);
void gw_nic_free(struct gw_nic *n);

/* ---- machines.c: the set of machines ---- */

/* Tends all machines and frees those that no turn can be using. The caller holds the lock. */
void gw_machines_tend(struct gw *g, uint64_t now);
/* Frees all machines. No thread polls any more. */
void gw_machines_free(struct gw *g);

/* ---- vm.c: one machine ---- */

/* Creates a machine; the caller holds the lock. Returns 0, or -errno with one sentence in `err`.
 * After a failure *out is the incomplete machine (or NULL), and the caller removes it like any
 * other. */
int gw_vm_make(struct gw *g, unsigned number, const struct gw_vm_config *cfg, struct gw_vm **out,
	char *err, size_t errlen);
/* Frees a machine that is not polled any more and has no port at the switch. */
void gw_vm_free(struct gw_vm *vm);

/* ---- identity.c: addresses, Destination Functions, tunnels ---- */

/* Derives a locally administered MAC address from `len` bytes (FNV-1a), always the same. */
void gw_mac_of(const void *p, size_t len, uint8_t mac[6]);
/* Checks the tunnel of a configuration. This and gw_mac_of() need no lock; the other functions need
 * it. Returns 0, or -EINVAL with one sentence in `err`. */
int gw_identity_check(const struct gw_vm_config *cfg, char *err, size_t errlen);
/* Checks that no other machine has the machine's paths or its function and that no other port
 * claims its addresses, and chooses the function if it is GW_FUNCTION_ANY. Returns 0, or -errno
 * with one sentence in `err`. */
int gw_identity_settle(struct gw *g, struct gw_vm_config *cfg, char *err, size_t errlen);
/* Fills in the claims of the machine's ports. */
void gw_identity_claims(struct gw_vm *vm);
/* Finds the tunnel of the machine's outer address, or creates it. Returns 0, or -EADDRINUSE with
 * one sentence in `err`. */
int gw_identity_plug(struct gw *g, struct gw_vm *vm, char *err, size_t errlen);
/* Removes the tunnel from the switch if no other machine uses it. The machine's own ports are
 * removed already. */
void gw_identity_unplug(struct gw *g, struct gw_vm *vm);
/* Fills in the Falcon part of the engine's configuration. `c` has the machine's addresses already;
 * this appends the tunnel's. */
void gw_identity_engine(const struct gw *g, const struct gw_vm *vm, struct eng_config *c);

#endif
