/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * saker-perf measures latency, bandwidth and message rate of Saker, and compares them with the
 * floor: raw frames over the same ports, in the same process, in alternating rounds.
 */
#include <rte_eal.h>
#include <rte_errno.h>

#include "perf.h"

int
main(int argc, char **argv)
{
	struct perf_options o;
	int n = rte_eal_init(argc, argv), rc;

	if (n < 0) {
		fprintf(stderr, "saker-perf: EAL cannot be initialized: %s\n",
			rte_strerror(rte_errno));
		return 1;
	}
	rc = perf_options_parse(&o, argc - n, argv + n);
	if (rc)
		return rc < 0 ? 2 : 0;
	rc = o.listen || o.connect != NULL ? perf_single(&o) : perf_embedded(&o);
	rte_eal_cleanup();
	return rc;
}
