/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything that a user can set, in one table of sections and keys, whatever way a value comes:
 * default, configuration file, environment (SAKER_KEY for the section [saker], SAKER_SECTION_KEY
 * for the others), command line. The later of these wins.
 */
#ifndef APP_SAKER_SETTINGS_H
#define APP_SAKER_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "../../lib/engine/engine.h"

enum source { FROM_DEFAULT, FROM_FILE, FROM_ENVIRONMENT, FROM_OPTION };

#define NAME_LEN 64
#define PATH_LEN 108 /* of a Unix socket */
#define FILE_LEN 256
#define WHY_LEN  256 /* of a sentence that refuses */
#define MAX_KEYS 128

struct prefix {
	struct sk_addr addr;
	unsigned len; /* bits, of the address's own family */
};

/* Which loop each of several stages runs on. */
struct loop_list {
	unsigned n; /* 0: as suits the numbers of loops and stages */
	unsigned loop[ENG_MAX_TRANSPORTS];
};

struct port_setting { /* [port N] */
	bool present;
	char device[NAME_LEN]; /* DPDK's name or number; empty: N */
	uint32_t mtu;          /* 0: that of [saker] */
	uint16_t rxd, txd;     /* 0: that of [saker] */
	bool checksum, tso;
};

struct if_setting { /* [interface N] */
	bool present;
	char port[NAME_LEN]; /* the N of a [port N], or a device's name */
	uint16_t vlan;
	struct prefix address;
};

struct route_setting { /* [route N] */
	bool present;
	struct prefix destination;
	struct sk_addr gateway;
};

#define VM_MAX    32
#define VALUE_LEN 108

/* What a machine's section may say, in its own order; drivers/gateway/keys.c reads the values. */
#define VM_KEY_LIST(X)                                                                             \
	X(NAME, "name")                                                                            \
	X(PATH, "path")                                                                            \
	X(SIZE, "size")                                                                            \
	X(SLOTS, "slots")                                                                          \
	X(TIMEOUT, "timeout")                                                                      \
	X(DOORBELL, "doorbell")                                                                    \
	X(MAC, "mac")                                                                              \
	X(VLAN, "vlan")                                                                            \
	X(IP, "ip")                                                                                \
	X(GATEWAY, "gateway")                                                                      \
	X(PEERS, "peers")                                                                          \
	X(FUNCTION, "function")                                                                    \
	X(PCID, "pcid")                                                                            \
	X(TUNNEL, "tunnel")                                                                        \
	X(NIC, "nic")                                                                              \
	X(NIC_MAC, "nic-mac")                                                                      \
	X(NIC_IP, "nic-ip")                                                                        \
	X(QPS, "qps")                                                                              \
	X(MRS, "mrs")                                                                              \
	X(RATE, "rate")                                                                            \
	X(MBUFS, "mbufs")
#define VM_KEY_ID(id, key) VM_##id,
enum vm_key { VM_KEY_LIST(VM_KEY_ID) VM_KEYS };
extern const char *const vm_keys[VM_KEYS];

struct vm_setting { /* [vm N] */
	bool present;
	char value[VM_KEYS][VALUE_LEN];
};

struct gateway_setting { /* [gateway] */
	bool enabled;
	char uplink[NAME_LEN];
	char control[PATH_LEN];
	uint32_t mbufs;
};

struct settings {
	struct eng_config eng;
	char socket[PATH_LEN];
	uint32_t mtu;
	uint16_t rxd, txd;
	uint32_t total_mbufs; /* 0: as [limits] say */
	struct loop_list transport_loops, stage_loops;
	struct port_setting ports[ENG_MAX_PORTS];
	struct if_setting ifs[ENG_MAX_IFS];
	struct route_setting routes[ENG_MAX_ROUTES];
	struct gateway_setting gateway;
	struct vm_setting vms[VM_MAX];
	uint8_t source[MAX_KEYS]; /* enum source, by row of the table */
	/* The command line's own */
	bool interactive;
	char cmdline_file[FILE_LEN];
	char config_file[FILE_LEN];
	uint32_t stats_period; /* seconds; 0: none */
};

/* Writes a sentence, or its end; returns -EINVAL. */
int refuse_why(char why[WHY_LEN], const char *fmt, ...) __attribute__((format(printf, 2, 3)));

void settings_default(struct settings *s);
/* Sets one key. -ENOENT (no such section), -ESRCH (no such key), -EINVAL (the value is wrong):
 * `why` completes a sentence that begins with what was said. */
int settings_set(struct settings *s, const char *section, const char *key, const char *text,
	enum source source, char why[WHY_LEN]);
/* What a sentence may repeat of a value: `text`, but for a key's that is secret. */
const char *settings_shown(const char *section, const char *key, const char *text);
/* Where a key of a section without a number got its value. */
enum source settings_source(const struct settings *s, const char *section, const char *key);
/* --address PORT=ADDR/LEN: one interface more. */
int settings_add_address(struct settings *s, const char *text, char why[WHY_LEN]);
/* The environment. On failure `why` is the whole sentence. */
int settings_environment(struct settings *s, char why[WHY_LEN]);
/* A configuration file; likewise. */
int settings_file(struct settings *s, const char *path, char why[WHY_LEN]);
/* Spreads stages over loops where nothing was said; checks what several keys say together. `why` is
 * the whole sentence. */
int settings_finish(struct settings *s, char why[WHY_LEN]);
/* The effective values in the form of the configuration file, each with its origin; secrets are
 * left out. */
void settings_print(const struct settings *s, FILE *to);

#endif
