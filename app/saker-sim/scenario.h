/* SPDX-License-Identifier: BSD-3-Clause */
/* A scenario: what a run consists of. scenario_keys.c is the table of what may stand in a file. */
#ifndef SAKER_SIM_SCENARIO_H
#define SAKER_SIM_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_WORD     64 /* bytes of a name or a value, NUL included */
#define SIM_WHY      256
#define SIM_SWEEPS   4  /* keys that a file may vary */
#define SIM_VALUES   16 /* values of each */
#define SIM_MAX_RUNS 1024

enum sim_topology { SIM_PAIR, SIM_STAR, SIM_LEAF_SPINE };
enum sim_transport_kind { SIM_TCP, SIM_IWARP, SIM_FALCON, SIM_ROF };
enum sim_pattern { SIM_ONE_TO_ONE, SIM_INCAST, SIM_PERMUTATION, SIM_RANDOM };
enum sim_operation { SIM_PUSH, SIM_PULL, SIM_BOTH };
enum sim_cc { SIM_CC_SWIFT, SIM_CC_FIXED };
enum sim_tcp_cc { SIM_TCP_CUBIC, SIM_TCP_DCTCP, SIM_TCP_NO_CC };

/* One run. Percentages are 0..100; the rest as the names say. */
struct sim_scenario {
	char name[SIM_WORD];
	uint64_t seed;
	uint64_t warmup_us, duration_us, limit_ms, sample_us;
	/* network */
	uint32_t topology, hosts, leaves, spines;
	double link_gbps, link_loss, link_burst, link_reorder;
	uint64_t link_delay_ns, link_reorder_ns;
	double fabric_gbps, fabric_loss;
	uint64_t fabric_delay_ns;
	uint32_t slow_spines;
	double slow_gbps;
	uint32_t queue_kib, ecn_kib;
	/* hosts */
	uint32_t transport, payload, nic_queue_bytes;
	/* traffic */
	uint32_t pattern, operation, connections, outstanding;
	uint64_t messages, message_bytes, spread_us;
	/* TCP */
	uint32_t tcp_cc, tcp_buffer_kib;
	uint64_t tcp_rto_min_us;
	bool tcp_ecn;
	/* Falcon */
	uint32_t falcon_cc, flows, window, ooo_threshold;
	bool ordered, rack, early_cuts, plb;
	uint64_t target_ns, rto_min_us, ack_delay_us;
	double rnr, plb_delay;
	uint32_t packets; /* contexts of each pool of a host */
	/* RDMA */
	uint32_t reads;
	uint32_t rof_unordered; /* 0: weakly ordered, 1: not at all; where Falcon is not */
};

/* Writes why something was refused, cut to fit; returns `rc`. */
int sim_refuse(char why[SIM_WHY], int rc, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void sim_scenario_default(struct sim_scenario *s);
/* 0; -ENOENT: no such section; -ESRCH: no such key in it; -EINVAL: not a value for it (why). */
int sim_scenario_set(struct sim_scenario *s, const char *section, const char *key,
	const char *value, char why[SIM_WHY]);
/* What cannot be together. 0 or -EINVAL. */
int sim_scenario_check(const struct sim_scenario *s, char why[SIM_WHY]);
/* Writes the table of keys, a line each, with default and meaning. */
void sim_scenario_help(void);

/* A key that takes several values, one per run. */
struct sim_sweep {
	char section[SIM_WORD], key[SIM_WORD];
	char value[SIM_VALUES][SIM_WORD];
	unsigned nvalues;
};

/* A scenario file: a run for each combination of the values of [sweep]. */
struct sim_file {
	struct sim_scenario base;
	struct sim_sweep sweep[SIM_SWEEPS];
	unsigned nsweeps, nruns;
	char plot_y[SIM_WORD]; /* [plot]: a column of the report against the last swept key */
	bool plot_log;
};

/* Reads a file. 0, or -EINVAL, -ENOENT, -ENOMEM with `why`. */
int sim_file_load(struct sim_file *f, const char *path, char why[SIM_WHY]);
/* "section.key=value", from the command line: replaces a swept key by the one value. */
int sim_file_override(struct sim_file *f, const char *text, char why[SIM_WHY]);
/* The run number `run`, 0 <= run < nruns; values[i] is what sweep[i] has in it. */
int sim_file_run(const struct sim_file *f, unsigned run, struct sim_scenario *out,
	const char *values[SIM_SWEEPS], char why[SIM_WHY]);

#endif
