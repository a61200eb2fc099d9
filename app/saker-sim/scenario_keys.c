/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of keys of a scenario file. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/base/mem.h"
#include "../../lib/conf/conf.h"
#include "scenario.h"

enum kind { TEXT, U32, U64, REAL, BOOL, ONE_OF };

struct key {
	const char *section, *name;
	enum kind kind;
	size_t offset;
	double min, max;
	const char *text; /* the default, in the form of the file */
	const char *help;
	const char *names[5]; /* ONE_OF: the words, by value */
};

#define AT(field) offsetof(struct sim_scenario, field)

static const struct key keys[] = {
	{"run", "name", TEXT, AT(name), 0, 0, "run", "name of the output files"},
	{"run", "seed", U64, AT(seed), 0, 1e18, "1", "seed of all random numbers"},
	{"run", "warmup-us", U64, AT(warmup_us), 0, 1e9, "1000",
		"time between the last connection and the measurement"},
	{"run", "duration-us", U64, AT(duration_us), 0, 1e9, "10000",
		"time of the measurement; unused with traffic.messages"},
	{"run", "limit-ms", U64, AT(limit_ms), 1, 1e8, "60000",
		"virtual time after which a run is aborted"},
	{"run", "sample-us", U64, AT(sample_us), 0, 1e9, "0",
		"interval of the time series; 0: none"},

	{"topology", "type", ONE_OF, AT(topology), 0, 2, "pair", "connections between hosts",
		{"pair", "star", "leaf-spine"}},
	{"topology", "hosts", U32, AT(hosts), 2, 60000, "2", "number of hosts"},
	{"topology", "leaves", U32, AT(leaves), 1, 4096, "2",
		"leaf-spine: number of switches with hosts"},
	{"topology", "spines", U32, AT(spines), 1, 1024, "4",
		"leaf-spine: number of paths between leaves"},

	{"link", "gbps", REAL, AT(link_gbps), 0.001, 3200, "200", "rate of a host's link"},
	{"link", "delay-ns", U64, AT(link_delay_ns), 0, 1e9, "12500",
		"delay of a host's link, one way"},
	{"link", "loss", REAL, AT(link_loss), 0, 100, "0", "percent of packets that are lost"},
	{"link", "burst", REAL, AT(link_burst), 1, 1e6, "1", "mean number of consecutive losses"},
	{"link", "reorder", REAL, AT(link_reorder), 0, 100, "0",
		"percent of packets with an additional delay"},
	{"link", "reorder-ns", U64, AT(link_reorder_ns), 0, 1e9, "10000",
		"longest additional delay"},

	{"fabric", "gbps", REAL, AT(fabric_gbps), 0.001, 3200, "200",
		"rate of links between switches"},
	{"fabric", "delay-ns", U64, AT(fabric_delay_ns), 0, 1e9, "1000",
		"delay of links between switches, one way"},
	{"fabric", "loss", REAL, AT(fabric_loss), 0, 100, "0",
		"percent of packets that links between switches lose"},
	{"fabric", "slow-spines", U32, AT(slow_spines), 0, 1024, "0",
		"number of spines with slower links"},
	{"fabric", "slow-gbps", REAL, AT(slow_gbps), 0.001, 3200, "50", "rate of the slower links"},

	{"switch", "queue-kib", U32, AT(queue_kib), 0, 1e6, "1024",
		"queue of each port; 0: no limit"},
	{"switch", "ecn-kib", U32, AT(ecn_kib), 0, 1e6, "0",
		"queue length from which packets are marked; 0: never"},

	{"host", "transport", ONE_OF, AT(transport), 0, 3, "tcp", "transport of all hosts",
		{"tcp", "iwarp", "falcon", "rof"}},
	{"host", "payload", U32, AT(payload), 1, 65000, "4096", "payload bytes of a packet"},
	{"host", "nic-queue", U32, AT(nic_queue_bytes), 1, 1e8, "16384",
		"bytes of the queue between transport and wire"},

	{"receiver", "packet-ns", U64, AT(packet_ns), 0, 1e9, "0",
		"time that the destination of a flow needs for a packet"},
	{"receiver", "stop-us", U64, AT(stop_us), 0, 1e9, "0",
		"time for which its processor stops"},
	{"receiver", "run-us", U64, AT(run_us), 1, 1e9, "20000", "time between two stops"},
	{"receiver", "queue", U32, AT(rx_queue), 1, 1e6, "1024",
		"packets that wait for it in its port at most"},

	{"traffic", "pattern", ONE_OF, AT(pattern), 0, 3, "one-to-one", "senders and receivers",
		{"one-to-one", "incast", "permutation", "random"}},
	{"traffic", "operation", ONE_OF, AT(operation), 0, 2, "push",
		"Falcon: transactions, or RDMA: Writes and Reads", {"push", "pull", "both"}},
	{"traffic", "connections", U32, AT(connections), 1, 4096, "1", "connections of a sender"},
	{"traffic", "outstanding", U32, AT(outstanding), 1, 1e6, "2",
		"outstanding messages of a connection"},
	{"traffic", "messages", U64, AT(messages), 0, 1e9, "0",
		"messages of a connection in the run; 0: run.duration-us ends the run"},
	{"traffic", "message-bytes", U64, AT(message_bytes), 1, 1e9, "1048576",
		"bytes of a message"},
	{"traffic", "spread-us", U64, AT(spread_us), 0, 1e9, "0",
		"interval in which connections start at random"},

	{"tcp", "congestion", ONE_OF, AT(tcp_cc), 0, 2, "cubic", "congestion control",
		{"cubic", "dctcp", "none"}},
	{"tcp", "buffer-kib", U32, AT(tcp_buffer_kib), 16, 1e6, "8192",
		"send buffer and receive buffer of a connection"},
	{"tcp", "rto-min-us", U64, AT(tcp_rto_min_us), 1, 1e7, "1000",
		"shortest retransmission timeout"},
	{"tcp", "ecn", BOOL, AT(tcp_ecn), 0, 0, "no", "negotiate ECN"},

	{"falcon", "congestion", ONE_OF, AT(falcon_cc), 0, 2, "swift", "congestion control",
		{"swift", "dctcp", "fixed"}},
	{"falcon", "flows", U32, AT(flows), 1, 4, "1", "flows (paths) of a connection: 1 or 4"},
	{"falcon", "window", U32, AT(window), 1, 1e5, "192",
		"outstanding transactions of a connection"},
	{"falcon", "ordered", BOOL, AT(ordered), 0, 0, "no", "ordered connections"},
	{"falcon", "rack", BOOL, AT(rack), 0, 0, "yes",
		"detect losses by RACK-TLP instead of the distance in PSN"},
	{"falcon", "ooo-threshold", U32, AT(ooo_threshold), 1, 64, "3",
		"distance in PSN that indicates a loss"},
	{"falcon", "early-cuts", ONE_OF, AT(early_cuts), 0, 2, "default",
		"halve the window on early retransmissions; default: Swift no, DCTCP yes",
		{"default", "no", "yes"}},
	{"falcon", "plb", BOOL, AT(plb), 0, 0, "yes",
		"change the path after congested round trips"},
	{"falcon", "plb-delay", REAL, AT(plb_delay), 1, 1000, "101",
		"Swift: percent of the target delay from which a packet counts as congested"},
	{"falcon", "plb-fraction", REAL, AT(plb_fraction), 1, 100, "50",
		"percent of a round's packets from which on the round counts as congested"},
	{"falcon", "target-ns", U64, AT(target_ns), 0, 1e9, "25000", "Swift's base delay"},
	{"falcon", "rto-min-us", U64, AT(rto_min_us), 1, 1e7, "1000",
		"shortest retransmission timeout"},
	{"falcon", "ack-delay-us", U64, AT(ack_delay_us), 0, 1e6, "8", "delay of acknowledgements"},
	{"falcon", "rnr", REAL, AT(rnr), 0, 90, "0",
		"percent of requests that the target answers with \"not ready\""},
	{"falcon", "packets", U32, AT(packets), 1, 1e6, "4096",
		"packet contexts in each pool of a host"},

	{"rof", "unordered", ONE_OF, AT(rof_unordered), 0, 1, "none",
		"ordering mode with falcon.ordered = no", {"weak", "none"}},
	{"rdma", "reads", U32, AT(reads), 1, 4096, "128", "outstanding Reads of a QP: IRD and ORD"},
};

int
sim_refuse(char why[SIM_WHY], int rc, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(why, SIM_WHY, format, ap);
	va_end(ap);
	return rc;
}

/* The unit of a number in the key's name: limit-ms, packet-ns, queue-kib. */
static struct conf_range
scenario_keys_range(const struct key *k)
{
	static const struct {
		const char *end;
		enum conf_kind kind;
		uint64_t unit;
	} units[] = {{"-ns", CONF_TIME, 1}, {"-us", CONF_TIME, 1000}, {"-ms", CONF_TIME, 1000000},
		{"-kib", CONF_BYTES, 1024}, {"-bytes", CONF_BYTES, 1}, {"payload", CONF_BYTES, 1},
		{"nic-queue", CONF_BYTES, 1}};
	struct conf_range r = {CONF_COUNT, 1, 1, (uint64_t)k->min, (uint64_t)k->max};
	size_t len = strlen(k->name);

	for (size_t i = 0; i < SK_ARRAY_LEN(units); i++) {
		size_t n = strlen(units[i].end);

		if (len >= n && strcmp(k->name + len - n, units[i].end) == 0) {
			r.kind = units[i].kind;
			r.base = r.quantum = units[i].unit;
		}
	}
	return r;
}

static int
scenario_keys_set_number(void *field, const struct key *k, const char *value, char why[CONF_WHY])
{
	struct conf_range r = scenario_keys_range(k);
	uint64_t v;

	if (conf_number(value, &r, &v, why) < 0)
		return -EINVAL;
	if (k->kind == U64)
		*(uint64_t *)field = v;
	else
		*(uint32_t *)field = (uint32_t)v;
	return 0;
}

static int
scenario_keys_set_word(void *field, const struct key *k, const char *value, char why[CONF_WHY])
{
	struct conf_word words[SK_ARRAY_LEN(k->names) + 1] = {{NULL, 0}};
	uint64_t v;

	for (unsigned i = 0; i < SK_ARRAY_LEN(k->names) && k->names[i] != NULL; i++)
		words[i] = (struct conf_word){k->names[i], i};
	if (conf_word(value, words, &v, why) < 0)
		return -EINVAL;
	*(uint32_t *)field = (uint32_t)v;
	return 0;
}

static int
scenario_keys_parse(void *field, const struct key *k, const char *value, char why[CONF_WHY])
{
	switch (k->kind) {
	case TEXT:
		return conf_text(value, SIM_WORD, field, why);
	case BOOL:
		return conf_bool(value, field, why);
	case ONE_OF:
		return scenario_keys_set_word(field, k, value, why);
	case REAL:
		return conf_real(value, k->min, k->max, field, why);
	default:
		return scenario_keys_set_number(field, k, value, why);
	}
}

static int
scenario_keys_set(struct sim_scenario *s, const struct key *k, const char *value, char why[SIM_WHY])
{
	char reason[CONF_WHY], shown[CONF_SHOWN];

	if (scenario_keys_parse((char *)s + k->offset, k, value, reason) == 0)
		return 0;
	return sim_refuse(why, -EINVAL, "[%s] %s = %s %s", k->section, k->name,
		conf_shown(value, shown), reason);
}

int
sim_scenario_set(struct sim_scenario *s, const char *section, const char *key, const char *value,
	char why[SIM_WHY])
{
	bool section_known = false;

	for (unsigned i = 0; i < SK_ARRAY_LEN(keys); i++) {
		if (strcmp(keys[i].section, section) != 0)
			continue;
		section_known = true;
		if (strcmp(keys[i].name, key) == 0)
			return scenario_keys_set(s, &keys[i], value, why);
	}
	if (section_known)
		return sim_refuse(why, -ESRCH, "[%s] has no key '%s'", section, key);
	return sim_refuse(why, -ENOENT, "section [%s] is unknown", section);
}

bool
sim_scenario_has(const char *section)
{
	for (unsigned i = 0; i < SK_ARRAY_LEN(keys); i++)
		if (strcmp(keys[i].section, section) == 0)
			return true;
	return false;
}

void
sim_scenario_default(struct sim_scenario *s)
{
	char why[SIM_WHY];

	memset(s, 0, sizeof(*s));
	for (unsigned i = 0; i < SK_ARRAY_LEN(keys); i++)
		if (scenario_keys_set(s, &keys[i], keys[i].text, why) < 0)
			abort();
}

void
sim_scenario_help(void)
{
	const char *section = "";

	for (unsigned i = 0; i < SK_ARRAY_LEN(keys); i++) {
		const struct key *k = &keys[i];

		if (strcmp(section, k->section) != 0)
			printf("%s[%s]\n", i ? "\n" : "", section = k->section);
		printf("%-14s = %-11s ; %s", k->name, k->text, k->help);
		for (unsigned n = 0; n < SK_ARRAY_LEN(k->names) && k->names[n] != NULL; n++)
			printf("%s%s", n ? " | " : ": ", k->names[n]);
		printf("\n");
	}
	printf("\n[sweep]          ; section.key = value value ...: a run for each combination\n"
	       "[plot]           ; y = COLUMN, log = yes | no: draw a column of the report\n"
	       "                 ; against the last swept key\n");
}

int
sim_scenario_check(const struct sim_scenario *s, char why[SIM_WHY])
{
	if (s->topology == SIM_PAIR && s->hosts != 2)
		return sim_refuse(why, -EINVAL, "[topology] hosts = %u, but type = pair requires 2",
			s->hosts);
	if (s->topology == SIM_LEAF_SPINE && s->hosts % s->leaves != 0)
		return sim_refuse(why, -EINVAL,
			"[topology] hosts = %u is not a multiple of leaves = %u", s->hosts,
			s->leaves);
	if (s->slow_spines > s->spines)
		return sim_refuse(why, -EINVAL,
			"[fabric] slow-spines = %u exceeds [topology] spines = %u", s->slow_spines,
			s->spines);
	if (s->flows != 1 && s->flows != 4)
		return sim_refuse(why, -EINVAL, "[falcon] flows = %u is neither 1 nor 4", s->flows);
	if (s->pattern == SIM_ONE_TO_ONE && s->hosts % 2 != 0)
		return sim_refuse(why, -EINVAL,
			"[topology] hosts = %u is odd, but pattern = one-to-one requires pairs",
			s->hosts);
	if (s->messages == 0 && s->duration_us == 0)
		return sim_refuse(why, -EINVAL,
			"[traffic] messages and [run] duration-us are both 0, so no run would end");
	return 0;
}
