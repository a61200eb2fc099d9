/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the engine's counters, the port's statistics and the memory of a QP. */
#include <malloc.h>
#include <rte_ethdev.h>
#include <stdlib.h>
#include <unistd.h>

#include "perf.h"

static void
row(const char *who, const char *layer, const char *name, uint64_t value, const char *help)
{
	if (value)
		fprintf(stderr, "%-8s %-8s %-24s %12lu  %s\n", who, layer, name,
			(unsigned long)value, help);
}

static void
reason_row(void *who, const char *layer, const char *name, enum sk_severity sev, const char *help,
	uint64_t value)
{
	row(who, layer, name, value, help);
}

static void
port_rows(uint16_t port, const char *who)
{
	int n = rte_eth_xstats_get_names(port, NULL, 0);
	struct rte_eth_xstat_name *names;
	struct rte_eth_xstat *stats;

	if (n <= 0)
		return;
	names = calloc((size_t)n, sizeof(*names));
	stats = calloc((size_t)n, sizeof(*stats));
	if (names != NULL && stats != NULL &&
		rte_eth_xstats_get_names(port, names, (unsigned)n) == n &&
		rte_eth_xstats_get(port, stats, (unsigned)n) == n)
		for (int i = 0; i < n; i++)
			row(who, "port", names[stats[i].id].name, stats[i].value, "");
	free(names);
	free(stats);
}

/* Prints the memory of the whole process, including other engines and clients in it. mallinfo2()
 * counts one arena only, so run saker-perf with MALLOC_ARENA_MAX=1. */
static void
memory_rows(const char *who)
{
	struct mallinfo2 m = mallinfo2();
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long all, resident = 0;

	if (f != NULL && fscanf(f, "%lu %lu", &all, &resident) != 2)
		resident = 0;
	if (f != NULL)
		fclose(f);
	row(who, "process", "malloc_bytes", m.uordblks + m.hblkhd, "");
	row(who, "process", "resident_bytes", resident * (uint64_t)getpagesize(),
		"without hugetlb");
}

void
perf_counters_print(const struct eng *e, uint16_t port, const char *who)
{
	struct eng_totals t;

	eng_counters(e, reason_row, (void *)(uintptr_t)who);
	port_rows(port, who);
	eng_totals(e, &t);
	row(who, "engine", "private_bytes_per_qp", t.private_bytes_per_qp, "of an idle connection");
	row(who, "engine", "shared_bytes_per_qp", t.shared_bytes_per_qp, "16-deep queues");
	memory_rows(who);
}
