/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual machines as tenants. Each machine has an instance of lib/engine of its own, with its own
 * addresses, limits, tables and keys, so that no number of one tenant (QPN, STag, key) is valid for
 * another. The machines share the lcore that polls their instances, and the switch that connects
 * them to the wire.
 *
 * One lcore calls gw_poll(). One other thread calls gw_tend(), which attaches and detaches the
 * machines' programs. Any thread may call gw_command_*(), gw_each(), gw_vm_add(), gw_vm_del(),
 * gw_vms_leaving() and gw_uplink_attach().
 */
#ifndef SAKER_GATEWAY_H
#define SAKER_GATEWAY_H

#include "../../lib/command/output.h"
#include "bar.h"
#include "doorbell.h"
#include "switch.h"

#define GW_NAME_MAX  24
#define GW_PATH_MAX  108
#define GW_ADDRS_MAX 8

#define GW_FUNCTION_ANY UINT32_MAX

struct gw;

struct gw_config {
	const struct eng_config
		*base;  /* inherited by the machines' engines; outlives the gateway */
	int uplink;     /* DPDK port, not yet started; -1: none */
	uint32_t mtu;   /* of the uplink and of all machines: bytes of an IP packet */
	uint32_t mbufs; /* for frames from the wire and from the machines' cards */
	/* Returns whether another thread is calling gw_poll() at present. NULL: the thread that
	 * calls gw_tend() calls gw_poll(), too. */
	bool (*running)(void *arg);
	void *running_arg;
	/* With `on` true, requests that the sleeping poller wakes once when `fd` is readable; each
	 * call is good for one wake-up. With `on` false, cancels the request. Returns 0 or -errno.
	 * NULL: the poller never sleeps. */
	int (*wake)(void *arg, int fd, bool on);
	void *wake_arg;
	/* Keeps the doorbells' connections for the next saker. Zeros: nothing does. */
	struct gw_keeper keeper;
};

/* Starts the uplink and creates the switch, without machines. Returns NULL on failure, with one
 * sentence in `err`. */
struct gw *gw_create(const struct gw_config *cfg, char *err, size_t errlen);
/* Frees the gateway and its machines. No thread may poll or tend any more. NULL is allowed. */
void gw_destroy(struct gw *g);
/* Returns the DPDK port ("net_ring_gateway") that connects the host's own engine to the switch, and
 * stores in `mac` the MAC address that the engine uses there. */
uint16_t gw_host_port(const struct gw *g, uint8_t mac[6]);

/* Runs one turn of the switch and of each machine's engine. `now` is in ns. Returns whether there
 * was work. */
bool gw_poll(struct gw *g, uint64_t now);
/* Sets the hooks in `c`, the configuration of the host's engine: its loop 0 then calls gw_poll(),
 * and sleeps only when no machine has rung its doorbell. */
void gw_hook(struct gw *g, struct eng_config *c);
/* Serves the machines' memories and doorbells, frees the machines that have been removed, and looks
 * after the uplink: its link, and whether its device was removed. Call this every few ms; `now` is
 * in ns. */
void gw_tend(struct gw *g, uint64_t now);
/* Claims the addresses that the host's engine has by now, so that no machine has them. Call this
 * after each eng_change() of that engine, while its loops run. */
void gw_host_claim(struct gw *g);

/* Takes the device of the uplink into use again, after it was removed and has come back under the
 * same name. *port is the DPDK port of the uplink, and may be another one afterwards. Returns 0, or
 * -errno with one sentence in `err`: -ENOENT when *port is not the uplink's. */
int gw_uplink_attach(struct gw *g, uint16_t *port, char *err, size_t errlen);

struct gw_prefix {
	struct sk_addr addr;
	unsigned len; /* bits, of the address's own family */
};

struct gw_vm_config {
	char name[GW_NAME_MAX]; /* letters, digits, '-', '_', '.' */
	/* The shared memory, as in struct gw_bar_config. */
	char path[GW_PATH_MAX];
	uint64_t size;
	uint32_t slots, timeout_ms;
	/* The socket for QEMU's ivshmem-doorbell, which Saker creates; "": none. */
	char doorbell[GW_PATH_MAX];
	/* On the wire. */
	uint8_t mac[6]; /* of its RDMA device; zeros: derived from the name */
	uint16_t vlan;  /* ETH_NO_VLAN or id */
	unsigned naddrs;
	struct gw_prefix addrs[GW_ADDRS_MAX];
	struct sk_addr gateway; /* the next hop of its default route; unspecified: none */
	bool peers;             /* may exchange frames with other machines that have `peers` */
	/* Its Falcon packets. */
	uint32_t function;       /* Destination Function, unique; GW_FUNCTION_ANY: the next free */
	bool pcid;               /* packets carry a cookie (PCID) that begins with `function` */
	struct gw_prefix tunnel; /* outer address, which machines of one VLAN may share;
				    unspecified: its own addresses */
	/* Its network card. */
	char nic[GW_PATH_MAX]; /* vhost-user socket, which Saker creates; "": none */
	unsigned nnic; /* IP addresses that the card may send from; 0: all that no port claims */
	struct sk_addr nic_addrs[GW_ADDRS_MAX];
	uint8_t nic_mac[6]; /* zeros: `mac` with the lowest bit of its fourth byte inverted */
	/* Quotas. */
	uint32_t qps, mrs;
	uint64_t rate;  /* bytes per second into the switch, for RDMA and card each; 0: no limit */
	uint32_t mbufs; /* of its engine, for sending and for receiving each */
	/* Its share of a turn beside other machines, and the limits of all its programs. */
	struct eng_rates rates;
};

/* Sets the defaults. */
void gw_vm_default(struct gw_vm_config *vm);
/* Sets one KEY=VALUE of the command "vm add". Returns 0, or -EINVAL with one sentence in `err`. */
int gw_vm_set(
	struct gw_vm_config *vm, const char *key, const char *value, char *err, size_t errlen);
/* Checks a configuration and fills in derived values, as gw_vm_add() does. Returns 0, or -EINVAL
 * with one sentence in `err`. */
int gw_vm_check(struct gw_vm_config *cfg, char *err, size_t errlen);
/* Creates a machine and starts to serve it. Returns 0, or -errno with one sentence in `err`. */
int gw_vm_add(struct gw *g, const struct gw_vm_config *vm, char *err, size_t errlen);
/* Begins to remove a machine: detaches its programs, which notifies their peers. gw_tend() frees
 * the machine later. Returns 0, or -ENOENT when there is no such machine. */
int gw_vm_del(struct gw *g, const char *name);
/* Returns the number of machines that are being removed. */
unsigned gw_vms_leaving(struct gw *g);

/* Calls `each` for the engine of each machine, which exists until `each` returns. `each` may wait
 * for the engine's stages, and calls no function of this header. */
typedef void gw_visit(void *arg, const char *machine, struct eng *e);
void gw_each(struct gw *g, gw_visit *each, void *arg);

/* Execute the commands "vm add NAME KEY=VALUE...", "vm del NAME" and "show vms". Return 0, or
 * -errno when `out` has become a refusal. */
int gw_command_add(struct gw *g, const char *words, struct cmd_out *out);
int gw_command_del(struct gw *g, const char *name, struct cmd_out *out);
void gw_command_show(struct gw *g, struct cmd_out *out);

#endif
