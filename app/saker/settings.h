/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The settings of saker, in one table of sections and keys. A value comes from the default, the
 * configuration file, the environment (SAKER_KEY for the section [saker], SAKER_SECTION_KEY for the
 * others) or the command line. The last of these that sets a key takes precedence.
 */
#ifndef APP_SAKER_SETTINGS_H
#define APP_SAKER_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "../../lib/base/log.h"
#include "../../lib/conf/conf.h"
#include "../../lib/engine/engine.h"

enum source { FROM_DEFAULT, FROM_FILE, FROM_ENVIRONMENT, FROM_OPTION, FROM_COMMAND };

/* When a changed value takes effect: at the next start; at once; at once if the exchange of Falcon
 * uses keys or certificates already; at once for machines that come or go, but not for others. */
enum takes_effect { AT_RESTART, AT_ONCE, WITH_IDENTITY, AS_MACHINE };

#define NAME_LEN 64
#define PATH_LEN 108 /* of a Unix socket's path */
#define FILE_LEN 256
#define WHY_LEN  768 /* of an error sentence, which may contain a path and several values */
#define MAX_KEYS 192

/* The prefix of a text that names a credential of the service manager, and not a file. */
#define CREDENTIAL "credential:"

struct prefix {
	struct sk_addr addr;
	unsigned len; /* bits, of the address's own family */
};

/* The loops on which several stages of a kind run. */
struct loop_list {
	unsigned n; /* 0: derived from the numbers of loops and stages */
	unsigned loop[ENG_MAX_TRANSPORTS];
};

struct port_setting { /* [port N] */
	bool present;
	char device[NAME_LEN]; /* DPDK's name or number; empty: N */
	uint32_t mtu;          /* 0: the value of [saker] */
	uint16_t rxd, txd;     /* 0: the values of [saker] */
	bool checksum, tso, interrupts;
};

struct if_setting { /* [interface N] */
	bool present;
	char port[NAME_LEN]; /* the N of a [port N], or the name of a device */
	uint16_t vlan;
	struct prefix address;
};

struct route_setting { /* [route N] */
	bool present;
	struct prefix destination;
	struct sk_addr gateway;
};

#define ROUTE_UNSET 129 /* length of a destination that is not configured */

#define VM_MAX    32
#define VALUE_LEN 512 /* bytes: eight addresses with their lengths fit */

/* The keys of a machine's section, in the order of the output. drivers/gateway/keys.c parses their
 * values. */
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
	X(MBUFS, "mbufs")                                                                          \
	X(WEIGHT, "weight")                                                                        \
	X(MAX_GBPS, "max-gbps")                                                                    \
	X(MAX_MOPS, "max-mops")
#define VM_KEY_ID(id, key) VM_##id,
enum vm_key { VM_KEY_LIST(VM_KEY_ID) VM_KEYS };
extern const char *const settings_vm_keys[VM_KEYS];

struct vm_setting { /* [vm N] */
	bool present;
	bool by_command; /* no reload removes it */
	char value[VM_KEYS][VALUE_LEN];
};

struct gateway_setting { /* [gateway] */
	bool enabled;
	char uplink[NAME_LEN];
	uint32_t mbufs;
};

struct metrics_setting {           /* [metrics] */
	char listen[PATH_LEN];     /* "": no metrics */
	char group[ENG_GROUP_MAX]; /* of a Unix socket, as its mode */
	uint32_t mode;
};

/* [falcon]: what this host proves itself with, and what its peers must. Texts are paths or
 * credential:NAME, or empty. */
struct identity_setting {
	char psk[FILE_LEN];
	char ca[FILE_LEN], certificate[FILE_LEN], key[FILE_LEN];
	char peer_name[FILE_LEN]; /* a DNS name; empty: the peer's address */
};

struct peer_setting { /* [peer N] */
	bool present;
	struct prefix address;
	char psk[FILE_LEN];
	char name[FILE_LEN];
};

#define PEER_MAX 256

struct connection_setting { /* [connection N] */
	bool present;
	struct prefix address; /* of the peers */
	uint16_t port;         /* of the listener; 0: every port */
	/* 0: as in [falcon] */
	uint8_t ordering; /* enum shm_ordering */
	uint8_t errors;   /* enum shm_errors */
	uint8_t flows;
	uint16_t psp; /* bits 1 << enum psp_version */
	uint32_t mtu;
};

#define NUMBERED_KINDS 7   /* kinds of sections with a number */
#define NUMBERED_MAX   256 /* sections of a kind */

struct settings {
	struct eng_config eng;
	struct identity_setting identity;
	struct peer_setting peers[PEER_MAX];
	struct connection_setting connections[ENG_MAX_MODES];
	char socket[PATH_LEN];
	/* The control socket; settings_finish() derives an empty path from `socket`. */
	char control[PATH_LEN];
	char control_group[ENG_GROUP_MAX]; /* as eng_config.socket_group and socket_mode */
	uint32_t control_mode;
	uint8_t log_level; /* enum sk_log_level; the default leaves the choice to EAL's options */
	uint32_t mtu;
	uint16_t rxd, txd;
	uint32_t total_mbufs; /* 0: [limits] sets the numbers of mbufs */
	struct loop_list transport_loops, stage_loops;
	struct port_setting ports[ENG_MAX_PORTS];
	struct if_setting ifs[ENG_MAX_IFS];
	struct route_setting routes[ENG_MAX_ROUTES];
	struct gateway_setting gateway;
	struct metrics_setting metrics;
	struct vm_setting vms[VM_MAX];
	uint8_t source[MAX_KEYS]; /* enum source, by row of the table */
	/* Lines of the configuration file, from 1: of each key in a section without a number, and
	 * of each section with a number, by kind and number. 0: not from the file. */
	uint32_t key_line[MAX_KEYS], section_line[NUMBERED_KINDS][NUMBERED_MAX];
	uint32_t line; /* the line that is being read, or 0 */
	/* Only on the command line. */
	bool interactive, check;
	char cmdline_file[FILE_LEN];
	char config_file[FILE_LEN];
	uint32_t stats_period; /* seconds; 0: none */
};

/* Writes a sentence, or its end, to `why`. Returns -EINVAL. */
int settings_refuse(char why[WHY_LEN], const char *fmt, ...) __attribute__((format(printf, 2, 3)));

void settings_default(struct settings *s);
/* Notes the section, which the configuration file has. Returns 0, or -ENOENT with the end of a
 * sentence that begins with the section. */
int settings_section(struct settings *s, const char *section, char why[WHY_LEN]);
/* Sets one key. Returns 0, -ENOENT (no such section), -ESRCH (no such key) or -EINVAL (wrong
 * value). `why` then holds the end of a sentence that begins with the section, or with key and
 * value. */
int settings_set(struct settings *s, const char *section, const char *key, const char *text,
	enum source source, char why[WHY_LEN]);
/* Returns the form in which a sentence may repeat a value: its beginning in `buf`, or "(a secret)"
 * if it may be a pre-shared key. */
const char *settings_shown(const char *key, const char *text, char buf[CONF_SHOWN]);
/* Writes a sentence about a section with a number, after the place of the section if it is in a
 * file. Returns -EINVAL. */
int settings_refuse_section(const struct settings *s, const char *section, unsigned number,
	char why[WHY_LEN], const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Writes a sentence about a key of a section without a number, with its value, in the same way. */
int settings_refuse_key(const struct settings *s, const char *section, const char *key,
	char why[WHY_LEN], const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Returns the source of the value of a key in a section without a number. */
enum source settings_source(const struct settings *s, const char *section, const char *key);
/* Adds an interface from "PORT=ADDRESS/LENGTH", the argument of --address. Returns 0, or -EINVAL
 * with the end of a sentence in `why`. */
int settings_add_address(struct settings *s, const char *text, char why[WHY_LEN]);
/* Reads the environment, and refuses variables SAKER_... that no program of Saker reads. Returns 0,
 * or -EINVAL with one sentence in `why`. */
int settings_environment(struct settings *s, char why[WHY_LEN]);
/* Reads a configuration file. Returns 0, or -errno with one sentence in `why`. */
int settings_file(struct settings *s, const char *path, char why[WHY_LEN]);
/* Called for each key whose value differs, and with `key` NULL for a section with a number that
 * only one side has: `was` or `next` is then "". */
typedef void settings_differs(void *arg, const char *section, const char *key, const char *was,
	const char *next, enum takes_effect when);
/* Compares the effective values of two settings. */
void settings_diff(const struct settings *was, const struct settings *next, settings_differs *visit,
	void *arg);
/* Copies to *s the values of *next that take effect at once; with `identity` also those that do so
 * WITH_IDENTITY. */
void settings_adopt(struct settings *s, const struct settings *next, bool identity);
/* Returns when a key takes effect; AT_RESTART also for a key that does not exist. */
enum takes_effect settings_when(const char *section, const char *key);
/* Removes a section with a number. Returns 0, or -ENOENT with the end of a sentence that begins
 * with the section. */
int settings_unset(struct settings *s, const char *section, char why[WHY_LEN]);
/* Writes the values that do not have their default to a file, which it replaces at once. Returns 0,
 * or -EINVAL with one sentence in `why`. */
int settings_save(const struct settings *s, const char *path, char why[WHY_LEN]);
/* Distributes stages over loops where the user did not, and checks values that depend on each
 * other. Returns 0, or -EINVAL with one sentence in `why`. */
int settings_finish(struct settings *s, char why[WHY_LEN]);
/* Called with the name of each section ("port 0") and `key` NULL, and then with its keys. `source`
 * names the source of the value; NULL in a section with a number. */
typedef void settings_visit(
	void *arg, const char *section, const char *key, const char *value, const char *source);
/* Visits the effective values. Omits secrets. */
void settings_each(const struct settings *s, settings_visit *visit, void *arg);

#endif
