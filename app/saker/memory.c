/* SPDX-License-Identifier: BSD-3-Clause */
/* The command that shows memory: of the process, of DPDK's heaps, and of the engines. */
#include <stdlib.h>
#include <unistd.h>

#include <rte_lcore.h>
#include <rte_malloc.h>

#include "saker.h"

static void
memory_process(struct cmd_out *out)
{
	unsigned long long all, resident;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f == NULL)
		return;
	/* Both numbers are in pages. */
	if (fscanf(f, "%llu %llu", &all, &resident) == 2)
		cmd_number(out, "resident_bytes", resident * (unsigned long)getpagesize());
	fclose(f);
}

/* Shows the heap of each NUMA node that has one. */
static void
memory_heaps(struct cmd_out *out)
{
	struct rte_malloc_socket_stats st;

	cmd_list(out, "heaps");
	for (unsigned i = 0; i < rte_socket_count(); i++) {
		int node = rte_socket_id_by_idx(i);

		if (node < 0 || rte_malloc_get_socket_stats(node, &st) < 0)
			continue;
		cmd_record(out, NULL);
		cmd_number(out, "numa_node", (unsigned)node);
		cmd_number(out, "bytes", st.heap_totalsz_bytes);
		cmd_number(out, "free", st.heap_freesz_bytes);
		cmd_number(out, "largest_free", st.greatest_free_size);
		cmd_end(out);
	}
	cmd_end(out);
}

static void
memory_engine(void *arg, const char *machine, struct eng *e)
{
	struct cmd_out *out = arg;
	struct eng_totals t;

	eng_totals(e, &t);
	cmd_record(out, NULL);
	cmd_text(out, "machine", "%s", machine);
	cmd_number(out, "rx_mbufs", t.rx_mbufs);
	cmd_number(out, "free_rx_mbufs", t.rx_mbufs_free);
	cmd_number(out, "tx_mbufs", t.tx_mbufs);
	cmd_number(out, "free_tx_mbufs", t.tx_mbufs_free);
	cmd_number(out, "regions", t.regions);
	cmd_end(out);
}

int
show_memory(void *app, const char *arg, struct cmd_out *out)
{
	memory_process(out);
	memory_heaps(out);
	cmd_list(out, "engines");
	gateway_each(app, memory_engine, out);
	cmd_end(out);
	return 0;
}
