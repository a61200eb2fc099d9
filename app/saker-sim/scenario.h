/* SPDX-License-Identifier: BSD-3-Clause */
/* A scenario, the parameters of a run. scenario_keys.c has the table of keys of a scenario file. */
#ifndef SAKER_SIM_SCENARIO_H
#define SAKER_SIM_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_WORD     64 /* bytes of a name or a value, including the null byte */
#define SIM_WHY      256
#define SIM_SWEEPS   4  /* keys that a file may sweep */
#define SIM_VALUES   16 /* values of a swept key */
#define SIM_MAX_RUNS 1024

enum sim_topology { SIM_PAIR, SIM_STAR, SIM_LEAF_SPINE };
enum sim_transport_kind { SIM_TCP, SIM_IWARP, SIM_FALCON, SIM_ROF };
enum sim_pattern { SIM_ONE_TO_ONE, SIM_INCAST, SIM_PERMUTATION, SIM_RANDOM };
enum sim_operation { SIM_PUSH, SIM_PULL, SIM_BOTH };
enum sim_cc { SIM_CC_SWIFT, SIM_CC_DCTCP, SIM_CC_FIXED };
enum sim_cuts { SIM_CUTS_DEFAULT, SIM_CUTS_NO, SIM_CUTS_YES };
enum sim_tcp_cc { SIM_TCP_CUBIC, SIM_TCP_DCTCP, SIM_TCP_NO_CC };

/* The parameters of one run, in the units of their names. Losses and other shares are percentages,
 * 0..100. */
struct sim_scenario {
	char name[SIM_WORD];
	uint64_t seed;
	uint64_t warmup_us, duration_us, limit_ms, sample_us;
	/* Network. */
	uint32_t topology, hosts, leaves, spines;
	double link_gbps, link_loss, link_burst, link_reorder;
	uint64_t link_delay_ns, link_reorder_ns;
	double fabric_gbps, fabric_loss;
	uint64_t fabric_delay_ns;
	uint32_t slow_spines;
	double slow_gbps;
	uint32_t queue_kib, ecn_kib;
	/* Hosts. */
	uint32_t transport, payload, nic_queue_bytes;
	/* Processors of the destinations of flows. */
	uint64_t packet_ns, stop_us, run_us;
	uint32_t rx_queue;
	/* Traffic. */
	uint32_t pattern, operation, connections, outstanding;
	uint64_t messages, message_bytes, spread_us;
	/* TCP. */
	uint32_t tcp_cc, tcp_buffer_kib;
	uint64_t tcp_rto_min_us;
	bool tcp_ecn;
	/* Falcon. */
	uint32_t falcon_cc, early_cuts, flows, window, ooo_threshold;
	bool ordered, rack, plb;
	uint64_t target_ns, rto_min_us, ack_delay_us;
	double rnr, plb_delay, plb_fraction;
	uint32_t packets; /* packet contexts of each pool of a host */
	/* RDMA. */
	uint32_t reads;
	uint32_t rof_unordered; /* order of unordered connections: 0 weak, 1 none */
};

/* Writes an error sentence to `why`, truncated if necessary. Returns `rc`. */
int sim_refuse(char why[SIM_WHY], int rc, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void sim_scenario_default(struct sim_scenario *s);
/* Returns whether a scenario has this section. */
bool sim_scenario_has(const char *section);
/* Sets a key. Returns 0, -ENOENT (no such section), -ESRCH (no such key) or -EINVAL (wrong value),
 * with one sentence in `why`. */
int sim_scenario_set(struct sim_scenario *s, const char *section, const char *key,
	const char *value, char why[SIM_WHY]);
/* Checks values that depend on each other. Returns 0, or -EINVAL with one sentence in `why`. */
int sim_scenario_check(const struct sim_scenario *s, char why[SIM_WHY]);
/* Prints the table of keys with defaults and meanings. */
void sim_scenario_help(void);

/* A swept key, with one of several values in each run. */
struct sim_sweep {
	char section[SIM_WORD], key[SIM_WORD];
	char value[SIM_VALUES][SIM_WORD];
	unsigned nvalues;
};

/* A scenario file. It defines one run for each combination of the values in [sweep]. */
struct sim_file {
	struct sim_scenario base;
	struct sim_sweep sweep[SIM_SWEEPS];
	unsigned nsweeps, nruns;
	char plot_y[SIM_WORD]; /* [plot]: the column that is drawn against the last swept key */
	bool plot_log;
};

/* Reads a file. Returns 0, -EINVAL, -ENOENT or -ENOMEM, with one sentence in `why`. */
int sim_file_load(struct sim_file *f, const char *path, char why[SIM_WHY]);
/* Sets "section.key=value" of the command line, which replaces a swept key. Several values,
 * separated by spaces, make it a swept key. Returns as sim_file_load(). */
int sim_file_override(struct sim_file *f, const char *text, char why[SIM_WHY]);
/* Fills in the parameters of run number `run`, 0 <= run < nruns. values[i] becomes the value of
 * sweep[i] in this run. Returns 0, or -EINVAL with one sentence in `why`. */
int sim_file_run(const struct sim_file *f, unsigned run, struct sim_scenario *out,
	const char *values[SIM_SWEEPS], char why[SIM_WHY]);

#endif
