/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hostile clients of test/hostile at a saker that refuses what they need first. A client that
 * cannot be prepared frees only what it has: the victim of test/bench/neighbour.sh runs it in its
 * own process and reads its orders from descriptor 0.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <unistd.h>

#include "../../hostile/hostile.h"
#include "served.h"

static struct served served;

static void
refuse_domains(struct eng_limits *l)
{
	l->pds = 0;
}

static void
refuse_qps(struct eng_limits *l)
{
	l->qps = 0;
}

/* Runs an attack whose preparation fails, and checks that the standard descriptors stay open. */
static void
cannot_prepare(const char *name, void (*refuse)(struct eng_limits *l))
{
	struct hostile h = {.addr = "127.0.0.1", .port = 7900, .number = 2, .user = geteuid()};

	served_start(&served);
	refuse(&served.s->cfg.limits);
	h.where = served.path;
	cr_assert_lt(hostile_run(&h, name), 0, "%s", name);
	for (int fd = 0; fd <= 2; fd++)
		cr_assert_geq(fcntl(fd, F_GETFD), 0, "%s has closed descriptor %d", name, fd);
	served_end(&served);
}

Test(engine_attacks, pulls_without_a_protection_domain)
{
	cannot_prepare("pulls-kept", refuse_domains);
}

Test(engine_attacks, pulls_without_a_qp)
{
	cannot_prepare("pulls-kept", refuse_qps);
}

Test(engine_attacks, accept_without_a_protection_domain)
{
	cannot_prepare("accept", refuse_domains);
}

Test(engine_attacks, punch_without_a_protection_domain)
{
	cannot_prepare("punch", refuse_domains);
}
