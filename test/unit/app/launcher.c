/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the whole launcher, which runs in the process of each test. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../../app/saker/saker.h"

/* main() of app/saker/main.c. */
int saker_main(int argc, char **argv);

static char folder[] = "/tmp/saker-launcher-XXXXXX";
static char config[64], sock[64], control[64];

static void
setup(void)
{
	cr_assert_not_null(mkdtemp(folder));
	snprintf(config, sizeof(config), "%s/ini", folder);
	snprintf(sock, sizeof(sock), "%s/sock", folder);
	snprintf(control, sizeof(control), "%s/control", folder);
}

static void
teardown(void)
{
	unlink(config);
	cr_assert_eq(rmdir(folder), 0, "saker leaves files in its folder");
}

TestSuite(app_launcher, .init = setup, .fini = teardown);

/* Runs saker with the configuration file `text` until it ends, and returns its exit code. */
static int
saker_runs(const char *text)
{
	char *argv[] = {"saker", "--no-huge", "--no-shconf", "--no-pci", "-m", "128", "-l", "0",
		"--no-telemetry", "--vdev", "net_null0,no-rx=1", "--", "--config", config,
		"--socket", sock, "--idle", "yield", "--total-num-mbufs", "2048", "--address",
		"0=10.0.0.1/24", NULL};
	FILE *f = fopen(config, "we");

	cr_assert_not_null(f);
	setenv("SAKER_CONTROL", control, 1);
	fputs(text, f);
	cr_assert_eq(fclose(f), 0);
	return saker_main((int)(sizeof(argv) / sizeof(argv[0])) - 1, argv);
}

/* ---- The end of a failed start ---- */

static unsigned tended; /* atomic: calls of gw_tend() */
static unsigned destroyed;

void __real_gw_tend(struct gw *g, uint64_t now);
void __wrap_gw_tend(struct gw *g, uint64_t now);
void __real_eng_destroy(struct eng *e);
void __wrap_eng_destroy(struct eng *e);

void
__wrap_gw_tend(struct gw *g, uint64_t now)
{
	__atomic_fetch_add(&tended, 1, __ATOMIC_RELAXED);
	__real_gw_tend(g, now);
}

/* Waits for many times the interval of gw_tend(), in which its thread must not call it. */
void
__wrap_eng_destroy(struct eng *e)
{
	unsigned before = __atomic_load_n(&tended, __ATOMIC_RELAXED);

	usleep(200000);
	cr_expect_eq(__atomic_load_n(&tended, __ATOMIC_RELAXED), before,
		"a thread tends the machines while the engine is freed");
	destroyed++;
	__real_eng_destroy(e);
}

Test(app_launcher, a_failed_start_ends_the_thread_of_the_gateway_before_the_engine)
{
	cr_assert_eq(saker_runs("[saker]\ncontrol-group = saker-no-such-group\n"
				"[gateway]\nenabled = yes\n"),
		EXIT_FAILURE);
	cr_assert_eq(destroyed, 1, "the host's engine");
}
