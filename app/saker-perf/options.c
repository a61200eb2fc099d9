/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses the command line by a table, which --help prints. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/base/mem.h"
#include "../../lib/rof/rof.h"
#include "perf.h"

#define WARMUP 1000u

enum kind { NUMBER, FLAG, OFF, TEXT, CHOICE };

struct option_row {
	const char *name;
	enum kind kind;
	size_t at; /* offset in struct perf_options */
	uint64_t min, max;
	const char *const *choices;
	const char *help;
};

static const char *const ops[] = {
	"send", "write", "read", "atomic_fa", "atomic_cs", "write_imm", NULL};
static const char *const tests[] = {"lat", "bw", "rate", NULL};
static const char *const transports[] = {"iwarp", "falcon", NULL};
static const char *const orderings[] = {"strong", "weak", "none", NULL};
static const char *const error_modes[] = {"verbs", "complete", NULL};
static const char *const psps[] = {"none", "gcm128", "gcm256", "gmac128", "gmac256", NULL};

#define AT(field) offsetof(struct perf_options, field)
static const struct option_row rows[] = {
	{"transport", CHOICE, AT(transport), 0, 0, transports, "iwarp or falcon"},
	{"ordering", CHOICE, AT(ordering), 0, 0, orderings, "Falcon: strong, weak or none"},
	{"errors", CHOICE, AT(errors), 0, 0, error_modes, "Falcon: verbs or complete (in error)"},
	{"psp", CHOICE, AT(psp), 0, 0, psps, "Falcon: none, gcm128, gcm256, gmac128 or gmac256"},
	{"tunnel", FLAG, AT(tunnel), 0, 0, NULL, "Falcon: PSP's tunnel mode, with cookies"},
	{"op", CHOICE, AT(op), 0, 0, ops, "send, write, read, atomic_fa, atomic_cs or write_imm"},
	{"versus", CHOICE, AT(versus), 0, 0, ops,
		"another operation to measure in alternation, for the ratio of both"},
	{"test", CHOICE, AT(test), 0, 0, tests,
		"lat (ping-pong), bw (Gb/s of a stream) or rate (messages per second)"},
	{"size", NUMBER, AT(size), 1, 1u << 30, NULL, "bytes of a message (64; an Atomic has 8)"},
	{"iters", NUMBER, AT(iters), 1, 1000000000, NULL, "messages in all rounds together"},
	{"rounds", NUMBER, AT(rounds), 1, 1000, NULL,
		"rounds, in which floor and transport alternate"},
	{"warm-up", NUMBER, AT(warmup), 0, 1000000000, NULL,
		"messages before the first round that do not count (1000, at most a round)"},
	{"ms", NUMBER, AT(milliseconds), 0, 3600000, NULL,
		"end a round of bw or rate after so many milliseconds (write, read)"},
	{"qps", NUMBER, AT(qps), 1, 65536, NULL, "QPs under test"},
	{"idle-qps", NUMBER, AT(idle_qps), 0, 1000000, NULL, "further QPs, connected and idle"},
	{"depth", NUMBER, AT(depth), 2, 8192, NULL, "outstanding requests of a QP at most"},
	{"mtu", NUMBER, AT(mtu), 1280, 65521, NULL, "bytes of an IP packet"},
	{"verify", FLAG, AT(verify), 0, 0, NULL, "compare every byte of some operations first"},
	{"json", FLAG, AT(json), 0, 0, NULL, "print one JSON object"},
	{"histogram", FLAG, AT(histogram), 0, 0, NULL,
		"with --json and --test lat: print all latencies with their counts"},
	{"quiet", FLAG, AT(quiet), 0, 0, NULL, "print no progress"},
	{"counters", FLAG, AT(counters), 0, 0, NULL,
		"print the counters of engines and ports at the end"},
	{"no-offload", OFF, AT(offload), 0, 0, NULL, "use no checksum offload and no TSO"},
	{"no-floor", OFF, AT(floor), 0, 0, NULL, "do not measure the floor"},
	{"no-crc", OFF, AT(crc), 0, 0, NULL, "use MPA without CRC"},
	{"markers", FLAG, AT(markers), 0, 0, NULL, "use MPA with markers in both directions"},
	{"port", TEXT, AT(port), 0, 0, NULL, "both ends in this process: ring or memif"},
	{"impair", TEXT, AT(impair), 0, 0, NULL,
		"both ends in this process: a hostile wire, e.g. drop=0.01,seed=7"},
	{"listen", FLAG, AT(listen), 0, 0, NULL, "run only the accepting end"},
	{"connect", TEXT, AT(connect), 0, 0, NULL, "run only the connecting end, to the address X"},
	{"address", TEXT, AT(address), 0, 0, NULL, "ADDR/LEN of the port, for one end"},
	{"client", TEXT, AT(client), 0, 0, NULL, "attach to the saker with the socket X"},
	{"tcp-port", NUMBER, AT(tcp_port), 1, 65535, NULL,
		"port number to listen at or connect to; many QPs use the next ones, too"},
	{"pcap", TEXT, AT(pcap), 0, 0, NULL, "capture the frames of the first port to the file X"},
};

static void
perf_options_usage(void)
{
	printf("saker-perf [EAL options] -- [options]\n");
	for (unsigned i = 0; i < SK_ARRAY_LEN(rows); i++)
		printf("  --%-12s%s %s\n", rows[i].name,
			rows[i].kind == FLAG || rows[i].kind == OFF ? "    " : " X  ",
			rows[i].help);
	printf("Without --listen or --connect, both ends run in this process, on two lcores.\n");
}

static int
perf_options_refuse(const char *name, const char *value, const char *why)
{
	fprintf(stderr, "saker-perf: --%s%s%s %s\n", name, value[0] != '\0' ? " " : "", value, why);
	return -1;
}

static int
perf_options_refuse_choice(const struct option_row *r, const char *value)
{
	char why[128] = "is not one of ";
	size_t at = strlen(why);

	for (unsigned i = 0; r->choices[i] != NULL && at < sizeof(why); i++)
		at += (size_t)snprintf(
			why + at, sizeof(why) - at, "%s%s", i > 0 ? ", " : "", r->choices[i]);
	return perf_options_refuse(r->name, value, why);
}

static int
perf_options_set_number(const struct option_row *r, void *at, const char *value)
{
	char *end, why[96];
	unsigned long long v;

	errno = 0;
	v = strtoull(value, &end, 0);
	if (errno || *end || end == value || v < r->min || v > r->max) {
		snprintf(why, sizeof(why), "is not a number within %llu..%llu",
			(unsigned long long)r->min, (unsigned long long)r->max);
		return perf_options_refuse(r->name, value, why);
	}
	if (r->at == AT(tcp_port))
		*(uint16_t *)at = (uint16_t)v;
	else
		*(uint32_t *)at = (uint32_t)v;
	return 0;
}

static int
perf_options_set(struct perf_options *o, const struct option_row *r, const char *value)
{
	void *at = (char *)o + r->at;

	switch (r->kind) {
	case FLAG:
	case OFF:
		*(bool *)at = r->kind == FLAG;
		return 0;
	case TEXT:
		*(const char **)at = value;
		return 0;
	case NUMBER:
		return perf_options_set_number(r, at, value);
	case CHOICE:
		for (unsigned i = 0; r->choices[i] != NULL; i++) {
			if (strcmp(r->choices[i], value) == 0) {
				*(unsigned *)at = i;
				return 0;
			}
		}
		return perf_options_refuse_choice(r, value);
	}
	return -1;
}

static const struct option_row *
perf_options_find(const char *word)
{
	if (strncmp(word, "--", 2) != 0)
		return NULL;
	for (unsigned i = 0; i < SK_ARRAY_LEN(rows); i++)
		if (strcmp(rows[i].name, word + 2) == 0)
			return &rows[i];
	return NULL;
}

static uint32_t
option_paths(const struct perf_options *o)
{
	return (o->qps + o->idle_qps + PERF_PATH_QPS - 1) / PERF_PATH_QPS;
}

uint32_t
perf_locals(const struct perf_options *o)
{
	bool embedded = !o->listen && o->connect == NULL;

	return embedded && option_paths(o) > 1 ? PERF_LOCALS : 1;
}

uint32_t
perf_ports(const struct perf_options *o)
{
	return (option_paths(o) + perf_locals(o) - 1) / perf_locals(o);
}

/* Checks that the listener ports exist. */
static int
check_listeners(const struct perf_options *o)
{
	char given[16], why[64];

	if (o->tcp_port + perf_ports(o) - 1 <= UINT16_MAX)
		return 0;
	snprintf(given, sizeof(given), "%u", o->tcp_port);
	snprintf(why, sizeof(why), "leaves fewer than the %u ports that so many QPs need",
		perf_ports(o));
	return perf_options_refuse("tcp-port", given, why);
}

/* Sets the default size, and checks that an Atomic has 8 bytes. */
static int
check_size(struct perf_options *o)
{
	bool atomic = perf_op_atomic(o->op) || perf_op_atomic(o->versus);
	char given[16];

	if (o->size == 0)
		o->size = atomic ? 8 : 64;
	if (atomic && o->test == PERF_BW)
		return perf_options_refuse(
			"test", "bw", "is not for Atomics, which have 8 bytes; use lat or rate");
	snprintf(given, sizeof(given), "%u", o->size);
	if (atomic && o->size != 8)
		return perf_options_refuse("size", given, "is not the size of an Atomic, 8");
	return 0;
}

static int
perf_options_check(struct perf_options *o)
{
	if (o->listen && o->connect != NULL)
		return perf_options_refuse(
			"connect", o->connect, "cannot be combined with --listen");
	if (o->client != NULL && !o->listen && o->connect == NULL)
		return perf_options_refuse("client", o->client, "requires --listen or --connect");
	if (o->client != NULL && (o->impair != NULL || o->address != NULL || o->pcap != NULL))
		return perf_options_refuse("client", o->client,
			"cannot be combined with --impair, --address or --pcap");
	if ((o->listen || o->connect != NULL) && o->client == NULL && o->address == NULL)
		return perf_options_refuse(
			"address", "ADDR/LEN", "is required for one end without --client");
	if (o->milliseconds && (o->test == PERF_LAT || o->versus != PERF_NO_OP ||
				       (o->op != PERF_WRITE && o->op != PERF_READ)))
		return perf_options_refuse("ms", "N",
			"requires --test bw or rate, --op write or read, and no --versus");
	if (o->warmup != WARMUP && (o->listen || o->connect != NULL))
		return perf_options_refuse(
			"warm-up", "N", "cannot be combined with --listen or --connect");
	if (o->histogram && (!o->json || o->test != PERF_LAT))
		return perf_options_refuse("histogram", "", "requires --json and --test lat");
	if (strcmp(o->port, "ring") != 0 && strcmp(o->port, "memif") != 0)
		return perf_options_refuse("port", o->port, "is neither ring nor memif");
	if (o->transport == SAKER_IWARP && (o->ordering || o->errors || o->psp || o->tunnel))
		return perf_options_refuse("transport", "iwarp",
			"cannot be combined with --ordering, --errors, --psp or --tunnel");
	if (o->ordering == ROF_ORDER_NONE && o->errors != ROF_ERRORS_COMPLETE)
		return perf_options_refuse("ordering", "none", "requires --errors complete");
	return check_listeners(o) ? -1 : check_size(o);
}

int
perf_options_parse(struct perf_options *o, int argc, char **argv)
{
	*o = (struct perf_options){
		.op = PERF_WRITE,
		.versus = PERF_NO_OP,
		.test = PERF_LAT,
		.iters = 100000,
		.rounds = 5,
		.warmup = WARMUP,
		.qps = 1,
		.depth = 64,
		.mtu = 1500,
		.port = "ring",
		.tcp_port = PERF_PORT,
		.crc = true,
		.floor = true,
		.offload = true,
	};
	for (int i = 1; i < argc; i++) {
		const struct option_row *r = perf_options_find(argv[i]);
		bool valued;

		if (strcmp(argv[i], "--help") == 0) {
			perf_options_usage();
			return 1;
		}
		if (r == NULL) {
			fprintf(stderr, "saker-perf: option '%s' is unknown (see --help)\n",
				argv[i]);
			return -1;
		}
		valued = r->kind != FLAG && r->kind != OFF;
		if (valued && i + 1 == argc)
			return perf_options_refuse(r->name, "", "requires a value");
		if (perf_options_set(o, r, valued ? argv[++i] : NULL))
			return -1;
	}
	return perf_options_check(o);
}

const char *
perf_op_name(enum perf_op op)
{
	return ops[op];
}

const char *
perf_transport_name(enum saker_transport transport)
{
	return transports[transport];
}

const char *
perf_test_name(enum perf_test test)
{
	return tests[test];
}
