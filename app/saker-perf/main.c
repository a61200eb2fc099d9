/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * saker-perf measures latency, bandwidth and message rate of Saker, and compares them with the
 * floor: raw frames over the same ports, in the same process, in alternating rounds.
 */
#include <rte_eal.h>
#include <signal.h>
#include <string.h>

#include "perf.h"

/* Returns whether the command line asks for help, which EAL is not needed for. */
static bool
help_wanted(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
	return false;
}

int
main(int argc, char **argv)
{
	struct perf_options o;
	int n, rc;

	if (help_wanted(argc, argv)) {
		perf_options_usage();
		return 0;
	}
	n = perf_eal_words(argc, argv);
	if (perf_options_parse(&o, argc - n, argv + n))
		return 2;
	/* net_virtio_user writes to its back end's socket, also when the other end has left. */
	signal(SIGPIPE, SIG_IGN);
	if (perf_eal_init(&o, n, argv))
		return 1;
	rc = o.listen || o.connect != NULL ? perf_single(&o) : perf_embedded(&o);
	rte_eal_cleanup();
	return rc;
}
