/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Initializes EAL: with the words before "--", or without "--" with what the form of the program
 * needs. A client of a running saker needs no huge pages, no ports, and the processors that it may
 * use. Both ends in one process need two processors, and memory for two engines.
 */
#include <rte_eal.h>
#include <rte_errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/base/mem.h"
#include "perf.h"

#define EAL_WORDS 16
#define EMBEDDED  (1024ull << 20) /* bytes of memory for two engines */

int
perf_eal_words(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--") == 0)
			return i;
	return 0;
}

/* Writes "0@A,1@B" to `text` for the first `n` processors that this process may use. Returns how
 * many there are, `n` at most. */
static int
eal_lcores(char *text, size_t size, int n)
{
	cpu_set_t set;
	size_t at = 0;
	int have = 0;

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	for (int cpu = 0; cpu < CPU_SETSIZE && have < n; cpu++) {
		if (!CPU_ISSET(cpu, &set))
			continue;
		at += (size_t)snprintf(text + at, size - at, "%s%d@%d", have ? "," : "", have, cpu);
		have++;
	}
	return have;
}

/* Writes "0@(A,B,...)" to `text`: one lcore that may run on each of the processors of this
 * process. */
static void
eal_anywhere(char *text, size_t size)
{
	cpu_set_t set;
	size_t at = (size_t)snprintf(text, size, "0@(");

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	for (int cpu = 0; cpu < CPU_SETSIZE && at + 8 < size; cpu++)
		if (CPU_ISSET(cpu, &set))
			at += (size_t)snprintf(
				text + at, size - at, "%s%d", text[at - 1] == '(' ? "" : ",", cpu);
	snprintf(text + at, size - at, ")");
}

/* Returns whether the system has `bytes` of free huge pages of its default size. */
static bool
huge_pages_free(uint64_t bytes)
{
	unsigned long pages = 0, kib = 0;
	FILE *f = fopen("/proc/meminfo", "r");
	char line[128];

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		sscanf(line, "HugePages_Free: %lu", &pages);
		sscanf(line, "Hugepagesize: %lu kB", &kib);
	}
	if (f != NULL)
		fclose(f);
	return pages * kib * 1024 >= bytes;
}

static void
eal_add(char **words, int *n, const char *word)
{
	words[(*n)++] = (char *)(uintptr_t)word;
}

/* Fills words[0..EAL_WORDS). Returns how many, or -1 after printing an error. */
static int
eal_defaults(const struct perf_options *o, char *program, char *lcores, size_t size, char **words)
{
	static char prefix[32];
	int n = 0;

	words[n++] = program;
	eal_add(words, &n, "--no-pci");
	eal_add(words, &n, "--no-telemetry");
	eal_add(words, &n, "--log-level=warning");
	snprintf(prefix, sizeof(prefix), "--file-prefix=skp%d", (int)getpid());
	eal_add(words, &n, prefix);
	if (o->client != NULL) {
		eal_anywhere(lcores, size);
	} else if (eal_lcores(lcores, size, 2) < 2) {
		fprintf(stderr, "saker-perf: two ends in one process require two processors\n");
		return -1;
	}
	eal_add(words, &n, "--lcores");
	eal_add(words, &n, lcores);
	if (o->client == NULL && huge_pages_free(EMBEDDED)) {
		eal_add(words, &n, "--in-memory");
		return n;
	}
	eal_add(words, &n, "--no-huge");
	eal_add(words, &n, "--no-shconf");
	eal_add(words, &n, "-m");
	eal_add(words, &n, o->client != NULL ? "64" : "1024");
	return n;
}

int
perf_eal_init(const struct perf_options *o, int n, char **argv)
{
	char *words[EAL_WORDS + 1] = {NULL}, lcores[4096];

	if (n == 0) {
		if (o->address != NULL) {
			fprintf(stderr, "saker-perf: --address requires EAL's options for a port, "
					"before \"--\"\n");
			return -1;
		}
		n = eal_defaults(o, argv[0], lcores, sizeof(lcores), words);
		if (n < 0)
			return -1;
		argv = words;
	}
	if (rte_eal_init(n, argv) >= 0)
		return 0;
	fprintf(stderr, "saker-perf: EAL cannot be initialized: %s\n", rte_strerror(rte_errno));
	return -1;
}
