/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual machines as tenants. Each has an engine of its own (an instance of lib/engine), with its
 * own addresses, limits, tables and keys: no number of one tenant means anything in another's. What
 * they share is the lcore that polls them and the switch that joins them to the wire.
 *
 * gw_poll() belongs to one lcore. gw_tend() belongs to one other thread, which attaches and
 * detaches the machines' programs. The commands may come from any thread.
 */
#ifndef SAKER_GATEWAY_H
#define SAKER_GATEWAY_H

#include "bar.h"
#include "switch.h"

#define GW_NAME_MAX  24
#define GW_PATH_MAX  108
#define GW_ADDRS_MAX 8

#define GW_FUNCTION_ANY UINT32_MAX

struct gw;

struct gw_config {
	const struct eng_config *base; /* what machines' engines inherit; outlives the gateway */
	int uplink;                    /* DPDK's port, not yet started; -1: none */
	uint32_t mtu;                  /* of the uplink and of all machines: IP packet bytes */
	uint32_t mbufs;                /* for frames from the wire and from guests' cards */
	/* Whether gw_poll() is being called, by another thread. NULL: the caller polls by hand. */
	bool (*running)(void *arg);
	void *running_arg;
	/* Whoever polls and sleeps in between is to wake, once for each call, when `fd` is
	 * readable; `on` false: not any more. NULL: nobody sleeps. */
	int (*wake)(void *arg, int fd, bool on);
	void *wake_arg;
};

/* NULL with one sentence in `err`. */
struct gw *gw_create(const struct gw_config *cfg, char *err, size_t errlen);
/* Nobody polls or tends any more. */
void gw_destroy(struct gw *g);
/* The port ("net_ring_gateway") at which the host's own engine finds wire and machines, and the
 * address that it uses there. */
uint16_t gw_host_port(const struct gw *g, uint8_t mac[6]);

bool gw_poll(struct gw *g, uint64_t now);
/* The engine that `c` is for polls in its loop 0, and sleeps only when no machine has rung. */
void gw_hook(struct gw *g, struct eng_config *c);
void gw_tend(struct gw *g, uint64_t now);
struct gw_prefix {
	struct sk_addr addr;
	unsigned len; /* bits, of the address's own family */
};

struct gw_vm_config {
	char name[GW_NAME_MAX]; /* letters, digits, '-', '_', '.' */
	/* The memory: see struct gw_bar_config. */
	char path[GW_PATH_MAX];
	uint64_t size;
	uint32_t slots, timeout_ms;
	char doorbell[GW_PATH_MAX]; /* socket for QEMU's ivshmem-doorbell, which saker makes; "":
				       none */
	/* On the wire. */
	uint8_t mac[6]; /* of its RDMA devices; 0: made of the name */
	uint16_t vlan;  /* ETH_NO_VLAN or id */
	unsigned naddrs;
	struct gw_prefix addrs[GW_ADDRS_MAX];
	struct sk_addr gateway; /* unspecified: none */
	bool peers;             /* may speak with other machines that may */
	/* Of its Falcon packets: the Destination Function, of no other machine (GW_FUNCTION_ANY:
	 * the next one behind the host's), whether they carry a cookie that begins with it, and an
	 * outer address that other machines of its VLAN may have as well (unspecified: its own) */
	uint32_t function;
	bool pcid;
	struct gw_prefix tunnel;
	/* Its network card. */
	char nic[GW_PATH_MAX]; /* vhost-user socket, which saker makes; "": none */
	unsigned nnic;         /* IP addresses that it may send from; 0: all that nobody has */
	struct sk_addr nic_addrs[GW_ADDRS_MAX];
	uint8_t nic_mac[6]; /* 0: `mac` with the last bit of the first byte but two flipped */
	/* Quotas. */
	uint32_t qps, mrs;
	uint64_t rate;  /* bytes per second onto the switch, RDMA and card each; 0: no bound */
	uint32_t mbufs; /* of its engine, for sending and for receiving each */
};

void gw_vm_default(struct gw_vm_config *vm);
/* One KEY=VALUE as of "vm add". 0, or -EINVAL with one sentence. */
int gw_vm_set(
	struct gw_vm_config *vm, const char *key, const char *value, char *err, size_t errlen);
/* 0, or -errno with one sentence. */
int gw_vm_add(struct gw *g, const struct gw_vm_config *vm, char *err, size_t errlen);
/* Its programs are cut off, their peers told; gw_tend() does the rest. -ENOENT. */
int gw_vm_del(struct gw *g, const char *name);
unsigned gw_vms(struct gw *g);

/* "add NAME KEY=VALUE...", "del NAME", "show": what is to be said goes to `to`. 0 or -errno. */
int gw_command(struct gw *g, const char *line, FILE *to);
/* Serves the same on a Unix socket (a line per connection), from gw_tend(): 0, or -errno with one
 * sentence. */
int gw_control_open(struct gw *g, const char *path, char *err, size_t errlen);

#endif
