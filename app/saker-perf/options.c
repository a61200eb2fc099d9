/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses the command line by a table, which --help prints. */
#include <stdlib.h>
#include <string.h>

#include "../../lib/base/mem.h"
#include "../../lib/conf/conf.h"
#include "../../lib/rof/rof.h"
#include "perf.h"

#define SIZE_LIMIT (1u << 30)
#define VERIFY     100u /* operations that --verify checks at most */
#define HELP_WIDTH 80
#define HELP_AT    27 /* column of the explanations */

enum kind { NUMBER, BYTES, DURATION, FLAG, OFF, TEXT, CHOICE, SIZES };

struct option_row {
	const char *name;
	char letter;     /* the short form, or 0 */
	bool shared;     /* both ends must run with the same value */
	const char *arg; /* how the help names the value; NULL: none */
	enum kind kind;
	size_t at; /* offset in struct perf_options */
	uint64_t min, max;
	const char *const *choices;
	const char *help; /* ends with the default in parentheses, if there is one */
};

static const char *const ops[] = {
	"send", "write", "read", "atomic_fa", "atomic_cs", "write_imm", NULL};
static const char *const tests[] = {"lat", "bw", "rate", NULL};
static const char *const transports[] = {"iwarp", "falcon", NULL};
static const char *const orderings[] = {"strong", "weak", "none", NULL};
static const char *const error_modes[] = {"verbs", "complete", NULL};
static const char *const psps[] = {"none", "gcm128", "gcm256", "gmac128", "gmac256", NULL};

#define AT(field)                offsetof(struct perf_options, field)
#define ROW_CHOICE(field, words) CHOICE, AT(field), 0, 0, words
#define ROW_BYTES(field, a, b)   BYTES, AT(field), a, b, NULL
#define ROW_NUMBER(field, a, b)  NUMBER, AT(field), a, b, NULL
#define ROW_FLAG(field)          FLAG, AT(field), 0, 0, NULL
#define ROW_OFF(field)           OFF, AT(field), 0, 0, NULL
#define ROW_TEXT(field)          TEXT, AT(field), 0, 0, NULL

static const struct option_row rows[] = {
	{"op", 0, true, "OP", ROW_CHOICE(op, ops),
		"send, write, read, atomic_fa, atomic_cs or write_imm (write)"},
	{"versus", 0, true, "OP", ROW_CHOICE(versus, ops),
		"another operation that is measured in alternation, for the ratio of both"},
	{"test", 0, true, "TEST", ROW_CHOICE(test, tests),
		"lat (ping-pong), bw (Gb/s of a stream) or rate (messages per second) (lat)"},
	{"size", 's', true, "BYTES", ROW_BYTES(size, 1, SIZE_LIMIT),
		"message size (64; of an Atomic: 8)"},
	{"sizes", 0, true, "A:B", SIZES, AT(size_first), 1, SIZE_LIMIT, NULL,
		"all sizes from A to B, each twice the one before; -a is --sizes 2:8m"},
	{"iters", 'n', false, "N", ROW_NUMBER(iters, 1, PERF_ITERS_MAX),
		"messages in all rounds together (100000; no limit with --duration)"},
	{"duration", 'D', false, "TIME", DURATION, AT(duration), 1000000, 86400000000000, NULL,
		"time of all rounds together, e.g. 2, 2s or 500ms (none; 250ms with --sizes)"},
	{"rounds", 0, true, "N", ROW_NUMBER(rounds, 1, 1000),
		"rounds, in which floor and transport alternate (5)"},
	{"warm-up", 0, false, "N", ROW_NUMBER(warmup, 0, PERF_ITERS_MAX),
		"messages before the first round that do not count (1000, at most a round)"},
	{"bidirectional", 'b', true, NULL, ROW_FLAG(bidirectional),
		"both ends send; bw and rate are the sums of both directions"},
	{"verify", 0, true, NULL, ROW_FLAG(verify), "compare every byte of some operations first"},
	{"transport", 0, true, "NAME", ROW_CHOICE(transport, transports),
		"iwarp or falcon (iwarp)"},
	{"qps", 'q', true, "N", ROW_NUMBER(qps, 1, 65536), "QPs under test (1)"},
	{"idle-qps", 0, true, "N", ROW_NUMBER(idle_qps, 0, 1000000),
		"further QPs, connected and idle (0)"},
	{"depth", 't', true, "N", ROW_NUMBER(depth, 1, 8192),
		"outstanding requests of a QP at most (64)"},
	{"cq-mod", 'Q', false, "N", ROW_NUMBER(cq_mod, 1, 4096),
		"bw, rate: one request in N is signalled (a quarter of --depth, at most 16)"},
	{"inline", 'I', false, "BYTES", ROW_BYTES(inline_max, 0, 4096),
		"messages of at most so many bytes stand in their requests (0)"},
	{"events", 'e', false, NULL, ROW_FLAG(events),
		"with --client: sleep until the CQ raises an event"},
	{"mtu", 'm', false, "BYTES", ROW_BYTES(mtu, 1280, 65521),
		"size of an IP packet on the port (1500)"},
	{"no-crc", 0, false, NULL, ROW_OFF(crc), "iWARP: MPA without CRC"},
	{"markers", 0, false, NULL, ROW_FLAG(markers),
		"iWARP: MPA with markers in both directions"},
	{"ordering", 0, false, "MODE", ROW_CHOICE(ordering, orderings),
		"Falcon: strong, weak or none (strong)"},
	{"errors", 0, false, "MODE", ROW_CHOICE(errors, error_modes),
		"Falcon: verbs or complete (in error) (verbs)"},
	{"psp", 0, false, "CIPHER", ROW_CHOICE(psp, psps),
		"Falcon: none, gcm128, gcm256, gmac128 or gmac256 (none)"},
	{"tunnel", 0, false, NULL, ROW_FLAG(tunnel), "Falcon: PSP's tunnel mode, with cookies"},
	{"no-offload", 0, false, NULL, ROW_OFF(offload), "use no checksum offload and no TSO"},
	{"no-floor", 0, false, NULL, ROW_OFF(floor), "do not measure the floor"},
	{"json", 0, false, NULL, ROW_FLAG(json),
		"print one JSON object, or an array of one for each of --sizes"},
	{"histogram", 0, false, NULL, ROW_FLAG(histogram),
		"lat: print all latencies with their counts"},
	{"counters", 0, false, NULL, ROW_FLAG(counters),
		"print the counters of engines and ports at the end"},
	{"quiet", 0, false, NULL, ROW_FLAG(quiet), "print no progress"},
	{"pcap", 0, false, "FILE", ROW_TEXT(pcap), "capture the frames of the first port"},
	{"port", 0, false, "KIND", ROW_TEXT(port),
		"what connects both ends in this process: ring or memif (ring)"},
	{"impair", 0, false, "HOW", ROW_TEXT(impair),
		"both ends in this process: a hostile wire, e.g. drop=0.01,seed=7"},
	{"listen", 0, false, NULL, ROW_FLAG(listen), "run only the accepting end"},
	{"connect", 0, false, "ADDR", ROW_TEXT(connect), "run only the connecting end"},
	{"client", 0, false, "SOCKET", ROW_TEXT(client),
		"one end: attach to the saker with this socket"},
	{"address", 0, false, "ADDR/LEN", ROW_TEXT(address),
		"one end: run on the first port of EAL, with this address"},
	{"tcp-port", 'p', false, "N", ROW_NUMBER(tcp_port, 1, 65535),
		"where to listen or connect; many QPs use the next ones, too (18515)"},
};

/* Prints `text` in the column of the explanations, in as many lines as it needs. `at` is the
 * present column. */
static void
options_explain(const char *text, int at)
{
	while (text[0] != '\0') {
		int len = (int)strlen(text);

		if (len > HELP_WIDTH - HELP_AT) {
			for (len = HELP_WIDTH - HELP_AT; text[len] != ' '; len--)
				;
		}
		printf("%*s%.*s\n", HELP_AT - at, "", len, text);
		text += len + (text[len] == ' ');
		at = 0;
	}
}

void
perf_options_usage(void)
{
	puts("saker-perf [options]                  EAL gets what the options need\n"
	     "saker-perf EAL-OPTIONS... -- [options]\n"
	     "\n"
	     "Measures latency, bandwidth or message rate. Without --listen or --connect, both\n"
	     "ends run in this process, on two lcores. Numbers may have a unit: k, m, g.\n");
	for (unsigned i = 0; i < SK_ARRAY_LEN(rows); i++) {
		const struct option_row *r = &rows[i];
		const char letter[] = {'-', r->letter, ',', ' ', '\0'};
		int at = printf("  %s--%s %s", r->letter ? letter : "", r->name,
			r->arg != NULL ? r->arg : "");

		if (at >= HELP_AT) {
			putchar('\n');
			at = 0;
		}
		options_explain(r->help, at);
	}
	puts("  -h, --help               print this");
}

int
perf_options_refuse(const char *name, const char *value, const char *why)
{
	char shown[CONF_SHOWN];

	fprintf(stderr, "saker-perf: --%s%s%s %s\n", name, value[0] != '\0' ? " " : "",
		conf_shown(value, shown), why);
	return -1;
}

static int
perf_options_set_choice(const struct option_row *r, unsigned *at, const char *value)
{
	struct conf_word words[SK_ARRAY_LEN(ops) + 1] = {{NULL, 0}};
	char why[CONF_WHY];
	uint64_t v;

	for (unsigned i = 0; r->choices[i] != NULL && i < SK_ARRAY_LEN(ops); i++)
		words[i] = (struct conf_word){r->choices[i], i};
	if (conf_word(value, words, &v, why) < 0)
		return perf_options_refuse(r->name, value, why);
	*at = (unsigned)v;
	return 0;
}

/* Parses a number within the limits of `r`. A duration without a unit is in seconds. */
static int
options_number(const struct option_row *r, const char *value, uint64_t *v, char why[CONF_WHY])
{
	const struct conf_range range = {
		.kind = r->kind == DURATION ? CONF_TIME
			: r->kind == NUMBER ? CONF_COUNT
					    : CONF_BYTES,
		.base = r->kind == DURATION ? 1000000000 : 1,
		.min = r->min,
		.max = r->max,
	};

	return conf_number(value, &range, v, why);
}

static int
perf_options_set_number(const struct option_row *r, void *at, const char *value)
{
	char why[CONF_WHY];
	uint64_t v;

	if (options_number(r, value, &v, why) < 0)
		return perf_options_refuse(r->name, value, why);
	if (r->kind == DURATION)
		*(uint64_t *)at = v;
	else if (r->at == AT(tcp_port))
		*(uint16_t *)at = (uint16_t)v;
	else
		*(uint32_t *)at = (uint32_t)v;
	return 0;
}

static int
options_set_sizes(const struct option_row *r, struct perf_options *o, const char *value)
{
	const char *colon = strchr(value, ':');
	char first_text[32], why[CONF_WHY];
	uint64_t first, last;

	if (colon == NULL || (size_t)(colon - value) >= sizeof(first_text))
		return perf_options_refuse(r->name, value, "is not A:B (for example 2:8m)");
	snprintf(first_text, sizeof(first_text), "%.*s", (int)(colon - value), value);
	if (options_number(r, first_text, &first, why) < 0)
		return perf_options_refuse(r->name, first_text, why);
	if (options_number(r, colon + 1, &last, why) < 0)
		return perf_options_refuse(r->name, colon + 1, why);
	if (last < first)
		return perf_options_refuse(r->name, value, "ends below its start");
	o->size_first = (uint32_t)first;
	o->size_last = (uint32_t)last;
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
	case BYTES:
	case DURATION:
		return perf_options_set_number(r, at, value);
	case SIZES:
		return options_set_sizes(r, o, value);
	case CHOICE:
		return perf_options_set_choice(r, at, value);
	}
	return -1;
}

/* Returns the row of a word of the command line, or NULL. Of --NAME=VALUE, *value is VALUE; without
 * "=" it is NULL. */
static const struct option_row *
perf_options_find(const char *word, const char **value)
{
	size_t len = strcspn(word, "=");

	*value = word[len] == '=' ? word + len + 1 : NULL;
	for (unsigned i = 0; i < SK_ARRAY_LEN(rows); i++) {
		const char *name = rows[i].name;

		if (len > 2 && strncmp(word, "--", 2) == 0 && strlen(name) == len - 2 &&
			memcmp(word + 2, name, len - 2) == 0)
			return &rows[i];
		if (len == 2 && word[0] == '-' && rows[i].letter && word[1] == rows[i].letter)
			return &rows[i];
	}
	return NULL;
}

/* Takes the option argv[i]. Returns how many words it has, or -1. */
static int
options_take(struct perf_options *o, int argc, char **argv, int i)
{
	const char *value;
	const struct option_row *r = perf_options_find(argv[i], &value);
	bool split;

	if (strcmp(argv[i], "-a") == 0)
		return perf_options_set(o, perf_options_find("--sizes", &value), "2:8m") ? -1 : 1;
	if (r == NULL) {
		fprintf(stderr, "saker-perf: option '%s' is unknown (see --help)\n", argv[i]);
		return -1;
	}
	if (r->arg == NULL && value != NULL)
		return perf_options_refuse(r->name, value, "is wrong: the option has no value");
	split = r->arg != NULL && value == NULL;
	if (split && i + 1 == argc)
		return perf_options_refuse(r->name, "", "requires a value");
	if (perf_options_set(o, r, split ? argv[i + 1] : value))
		return -1;
	return 1 + split;
}

int
perf_options_parse(struct perf_options *o, int argc, char **argv)
{
	*o = (struct perf_options){
		.op = PERF_WRITE,
		.versus = PERF_NO_OP,
		.test = PERF_LAT,
		.rounds = 5,
		.warmup = PERF_WARMUP,
		.qps = 1,
		.depth = 64,
		.mtu = 1500,
		.port = "ring",
		.tcp_port = PERF_PORT,
		.crc = true,
		.floor = true,
		.offload = true,
	};
	for (int i = 1; i < argc;) {
		int words;

		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			perf_options_usage();
			return 1;
		}
		words = options_take(o, argc, argv, i);
		if (words < 0)
			return -1;
		i += words;
	}
	return perf_options_check(o);
}

uint32_t
perf_verified(const struct perf_options *o)
{
	return o->verify ? SK_MIN(o->iters, VERIFY) : 0;
}

unsigned
perf_steps(const struct perf_options *o)
{
	unsigned n = 1;

	for (uint64_t size = o->size_first; size < o->size_last; size *= 2)
		n++;
	return n;
}

struct perf_options
perf_step(const struct perf_options *o, unsigned i)
{
	struct perf_options step = *o;

	step.size = (uint32_t)SK_MIN((uint64_t)o->size_first << i, (uint64_t)o->size_last);
	return step;
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

/* Writes the value of a shared option. */
static void
options_value(const struct perf_options *o, const struct option_row *r, char *text, size_t size)
{
	const void *at = (const char *)o + r->at;
	unsigned v = r->kind == FLAG ? *(const bool *)at : *(const uint32_t *)at;

	if (r->at == AT(verify) && v)
		snprintf(text, size, "(%u operations)", perf_verified(o));
	else if (r->kind == SIZES)
		snprintf(text, size, "%u:%u", o->size_first, o->size_last);
	else if (r->kind == CHOICE)
		snprintf(text, size, "%s", r->choices[v] != NULL ? r->choices[v] : "none");
	else if (r->kind == FLAG)
		snprintf(text, size, "%s", v ? "yes" : "no");
	else
		snprintf(text, size, "%u", v);
}

void
perf_options_shared(const struct perf_options *o, char *text, size_t size)
{
	size_t at = 0;

	for (unsigned i = 0; i < SK_ARRAY_LEN(rows) && at < size; i++) {
		char value[32];

		if (!rows[i].shared)
			continue;
		options_value(o, &rows[i], value, sizeof(value));
		at += (size_t)snprintf(text + at, size - at, " --%s %s", rows[i].name, value);
	}
}

/* Returns the length of the option at the start of `text`: " --NAME VALUE". */
static size_t
options_word(const char *text)
{
	const char *next = text[0] != '\0' ? strstr(text + 1, " --") : NULL;

	return next != NULL ? (size_t)(next - text) : strlen(text);
}

int
perf_options_compare(const char *ours, const char *theirs)
{
	for (;;) {
		size_t mine = options_word(ours), its = options_word(theirs);

		if (mine == 0 && its == 0)
			return 0;
		if (mine != its || memcmp(ours, theirs, mine) != 0) {
			fprintf(stderr,
				"saker-perf: the other end runs with '%.*s', this one with "
				"'%.*s'\n",
				its > 0 ? (int)its - 1 : 0, its > 0 ? theirs + 1 : "",
				mine > 0 ? (int)mine - 1 : 0, mine > 0 ? ours + 1 : "");
			return -1;
		}
		ours += mine;
		theirs += its;
	}
}
