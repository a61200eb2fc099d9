/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks combinations of options, and sets what follows from them. */
#include <string.h>

#include "../../lib/base/mem.h"
#include "../../lib/rof/rof.h"
#include "perf.h"

#define ITERS    100000u
#define SWEEP_NS 250000000ull /* default duration of a size of --sizes */

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

	if (o->size_first != 0 && o->size != 0)
		return perf_options_refuse("sizes", "", "cannot be combined with --size");
	if (o->size_first != 0 && atomic)
		return perf_options_refuse("sizes", "", "is not for Atomics, which have 8 bytes");
	if (o->size_first != 0)
		o->size = o->size_first;
	if (o->size == 0)
		o->size = atomic ? 8 : 64;
	if (o->size_first == 0)
		o->size_first = o->size_last = o->size;
	if (atomic && o->test == PERF_BW)
		return perf_options_refuse(
			"test", "bw", "is not for Atomics, which have 8 bytes; use lat or rate");
	snprintf(given, sizeof(given), "%u", o->size);
	if (atomic && o->size != 8)
		return perf_options_refuse("size", given, "is not the size of an Atomic, 8");
	return 0;
}

/* Checks the options of streams. */
static int
check_stream(const struct perf_options *o)
{
	char given[16];

	if (o->bidirectional && o->test == PERF_LAT)
		return perf_options_refuse("bidirectional", "", "requires --test bw or rate");
	if (o->bidirectional && (perf_op_atomic(o->op) || perf_op_atomic(o->versus)))
		return perf_options_refuse("bidirectional", "", "is not for Atomics");
	if (o->cq_mod && o->test == PERF_LAT)
		return perf_options_refuse("cq-mod", "N", "requires --test bw or rate");
	snprintf(given, sizeof(given), "%u", o->cq_mod);
	if (o->cq_mod > SK_MAX(1u, o->depth / 2))
		return perf_options_refuse("cq-mod", given, "is more than half of --depth");
	return 0;
}

static int
check_sleep(const struct perf_options *o)
{
	if (o->events && o->client == NULL)
		return perf_options_refuse("events", "",
			"requires --client: without it this process runs the engine, which polls");
	if (o->events && o->test == PERF_LAT && (o->op == PERF_WRITE || o->versus == PERF_WRITE))
		return perf_options_refuse("events", "",
			"is not for --test lat --op write: a Write raises no event at its target");
	return 0;
}

/* Sets the limits of a run that the command line does not name. */
static void
options_limit(struct perf_options *o)
{
	if (o->duration == 0 && o->iters == 0 && o->size_first != o->size_last)
		o->duration = SWEEP_NS;
	if (o->iters == 0)
		o->iters = o->duration ? PERF_ITERS_MAX : ITERS;
}

int
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
	if (o->warmup != PERF_WARMUP && (o->listen || o->connect != NULL))
		return perf_options_refuse(
			"warm-up", "N", "cannot be combined with --listen or --connect");
	if (o->histogram && o->test != PERF_LAT)
		return perf_options_refuse("histogram", "", "requires --test lat");
	if (strcmp(o->port, "ring") != 0 && strcmp(o->port, "memif") != 0)
		return perf_options_refuse("port", o->port, "is neither ring nor memif");
	if (o->transport == SAKER_IWARP && (o->ordering || o->errors || o->psp || o->tunnel))
		return perf_options_refuse("transport", "iwarp",
			"cannot be combined with --ordering, --errors, --psp or --tunnel");
	if (o->transport == SAKER_FALCON && (!o->crc || o->markers))
		return perf_options_refuse("transport", "falcon",
			"cannot be combined with --no-crc or --markers, which are MPA's");
	if (o->ordering == ROF_ORDER_NONE && o->errors != ROF_ERRORS_COMPLETE)
		return perf_options_refuse("ordering", "none", "requires --errors complete");
	if (check_stream(o) || check_sleep(o) || check_listeners(o) || check_size(o))
		return -1;
	options_limit(o);
	return 0;
}
