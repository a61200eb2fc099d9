/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands that show the last events of connections: why one retransmitted, and why one failed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "saker.h"
#include "values.h"

#define FAILED_MOST 64 /* of one transport stage */
#define MS          1000000u

struct flight_find {
	uint32_t qpn;
	struct eng_flight *out;
	bool found;
};

static void
flight_find(void *arg, const char *machine, struct eng *e)
{
	struct flight_find *f = arg;

	f->found = f->found || eng_events(e, f->qpn, f->out) == 1;
}

static void
flight_ends(const struct tcp_tuple *t, struct cmd_out *out)
{
	show_end(out, "local", &t->laddr, t->lport);
	show_end(out, "remote", &t->raddr, t->rport);
}

static void
flight_list(const struct eng_flight *f, struct cmd_out *out)
{
	cmd_list(out, "events");
	for (unsigned i = 0; i < f->n; i++) {
		const struct eng_event *e = &f->event[i];

		cmd_record(out, NULL);
		cmd_number(out, "ms_ago", e->age_ns / MS);
		cmd_text(out, "event", "%s", e->name);
		cmd_number(out, "window", e->window);
		cmd_number(out, "in_flight", e->in_flight);
		cmd_number(out, "srtt_ns", e->srtt_ns);
		cmd_number(out, "rto_ns", e->rto_ns);
		cmd_end(out);
	}
	cmd_end(out);
}

int
show_events(void *app, const char *arg, struct cmd_out *out)
{
	struct flight_find f = {.out = calloc(1, sizeof(*f.out))};
	int rc = 0;

	if (f.out == NULL)
		return cmd_refuse(out, "memory is exhausted");
	if (!run_running())
		rc = cmd_refuse(out, "the loops are stopped; enter 'start' first");
	else if (value_number(arg, &f.qpn))
		gateway_each(app, flight_find, &f);
	if (rc == 0 && !f.found)
		rc = cmd_refuse(out, "there is no connected QP '%s'", arg);
	if (rc == 0) {
		flight_ends(&f.out->tuple, out);
		flight_list(f.out, out);
	}
	free(f.out);
	return rc;
}

static void
flight_failed(void *arg, const char *machine, struct eng *e)
{
	struct cmd_out *out = arg;
	struct eng_flight *all = calloc(FAILED_MOST, sizeof(*all));

	for (unsigned t = 0; all != NULL && t < ENG_MAX_TRANSPORTS; t++) {
		int n = eng_failed(e, t, all, FAILED_MOST);

		for (int i = 0; i < n; i++) {
			cmd_record(out, NULL);
			cmd_text(out, "machine", "%s", machine);
			flight_ends(&all[i].tuple, out);
			cmd_number(out, "ms_ago", all[i].age_ns / MS);
			cmd_text(out, "error", "%s", strerror(all[i].error));
			cmd_number(out, "number_of_events", all[i].n);
			cmd_text(out, "last_event", "%s",
				all[i].n > 0 ? all[i].event[all[i].n - 1].name : "-");
			flight_list(&all[i], out);
			cmd_end(out);
		}
	}
	free(all);
}

int
show_failed(void *app, const char *arg, struct cmd_out *out)
{
	if (!run_running())
		return cmd_refuse(out, "the loops are stopped; enter 'start' first");
	cmd_list(out, "failed");
	gateway_each(app, flight_failed, out);
	cmd_end(out);
	return 0;
}
