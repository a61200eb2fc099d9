/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the whole launcher, which runs in the process of each test. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../app/saker/saker.h"

/* main() of app/saker/main.c. */
int saker_main(int argc, char **argv);

static char folder[] = "/tmp/saker-launcher-XXXXXX";
static char config[64], sock[64], control[64], frames[64], memory[64];

static void
setup(void)
{
	cr_assert_not_null(mkdtemp(folder));
	snprintf(config, sizeof(config), "%s/ini", folder);
	snprintf(sock, sizeof(sock), "%s/sock", folder);
	snprintf(control, sizeof(control), "%s/control", folder);
	snprintf(frames, sizeof(frames), "%s/frames", folder);
	snprintf(memory, sizeof(memory), "%s/memory", folder);
}

static void
teardown(void)
{
	unlink(config);
	unlink(frames);
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
		"net_null0=10.0.0.1/24", NULL};
	FILE *f = fopen(config, "we");

	cr_assert_not_null(f);
	setenv("SAKER_CONTROL", control, 1);
	fputs(text, f);
	cr_assert_eq(fclose(f), 0);
	return saker_main((int)(sizeof(argv) / sizeof(argv[0])) - 1, argv);
}

/* ---- The end of a failed start ---- */

static struct {
	pthread_t thread; /* which tends the machines */
	bool runs, joined;
} tends;
static unsigned destroyed;

int __real_rte_ctrl_thread_create(pthread_t *thread, const char *name, const pthread_attr_t *attr,
	void *(*run)(void *), void *arg);
int __wrap_rte_ctrl_thread_create(pthread_t *thread, const char *name, const pthread_attr_t *attr,
	void *(*run)(void *), void *arg);
int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result);
void __real_eng_destroy(struct eng *e);
void __wrap_eng_destroy(struct eng *e);

int
__wrap_rte_ctrl_thread_create(pthread_t *thread, const char *name, const pthread_attr_t *attr,
	void *(*run)(void *), void *arg)
{
	int rc = __real_rte_ctrl_thread_create(thread, name, attr, run, arg);

	if (rc == 0 && strcmp(name, "saker-vms") == 0) {
		tends.thread = *thread;
		tends.runs = true;
	}
	return rc;
}

int
__wrap_pthread_join(pthread_t thread, void **result)
{
	int rc = __real_pthread_join(thread, result);

	if (rc == 0 && tends.runs && pthread_equal(thread, tends.thread))
		tends.joined = true;
	return rc;
}

void
__wrap_eng_destroy(struct eng *e)
{
	/* The thread itself destroys the engines of machines. */
	bool itself = tends.runs && pthread_equal(pthread_self(), tends.thread);

	cr_expect(itself || tends.joined == tends.runs,
		"a thread tends the machines while the host's engine is freed");
	destroyed++;
	__real_eng_destroy(e);
}

Test(app_launcher, a_failed_start_ends_the_thread_of_the_gateway_before_the_engine)
{
	cr_assert_eq(saker_runs("[saker]\ncontrol-group = saker-no-such-group\n"
				"[gateway]\nenabled = yes\n"),
		EXIT_FAILURE);
	cr_assert(tends.runs, "no thread tends the machines");
	cr_assert_eq(destroyed, 1, "the host's engine");
}

/* ---- Captures of a port whose device is removed ---- */

#define PATIENCE_MS 60000

static struct {
	rte_eth_dev_cb_fn report; /* what the engine calls for a removed device */
	void *arg;
	uint16_t port;
	bool full; /* ethdev accepts no callback of a send queue */
} driver;

int __real_rte_eth_dev_callback_register(
	uint16_t port, enum rte_eth_event_type type, rte_eth_dev_cb_fn report, void *arg);
int __wrap_rte_eth_dev_callback_register(
	uint16_t port, enum rte_eth_event_type type, rte_eth_dev_cb_fn report, void *arg);
const struct rte_eth_rxtx_callback *__real_rte_eth_add_tx_callback(
	uint16_t port, uint16_t queue, rte_tx_callback_fn fn, void *arg);
const struct rte_eth_rxtx_callback *__wrap_rte_eth_add_tx_callback(
	uint16_t port, uint16_t queue, rte_tx_callback_fn fn, void *arg);

int
__wrap_rte_eth_dev_callback_register(
	uint16_t port, enum rte_eth_event_type type, rte_eth_dev_cb_fn report, void *arg)
{
	if (type == RTE_ETH_EVENT_INTR_RMV) {
		driver.report = report;
		driver.arg = arg;
		driver.port = port;
	}
	return __real_rte_eth_dev_callback_register(port, type, report, arg);
}

const struct rte_eth_rxtx_callback *
__wrap_rte_eth_add_tx_callback(uint16_t port, uint16_t queue, rte_tx_callback_fn fn, void *arg)
{
	if (!driver.full)
		return __real_rte_eth_add_tx_callback(port, queue, fn, arg);
	rte_errno = ENOMEM;
	return NULL;
}

static pthread_t saker;

static void *
saker_main_runs(void *arg)
{
	return (void *)(intptr_t)saker_runs(arg);
}

/* Executes a command. Returns its status, or below 0 when no saker answers. `words`, if not NULL,
 * are in the answer. */
static int
command(const char *words, const char *fmt, ...)
{
	struct cmd_answer answer;
	char line[256];
	va_list ap;
	int rc;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	rc = cmd_ask(control, "text", line, &answer);
	if (rc < 0)
		return rc;
	if (words != NULL)
		cr_assert_not_null(strstr(answer.text, words), "'%s' gave '%s'", line, answer.text);
	free(answer.text);
	return answer.status;
}

static void
saker_begins_with(const char *text)
{
	cr_assert_eq(pthread_create(&saker, NULL, saker_main_runs, (void *)(uintptr_t)text), 0);
	for (unsigned ms = 0; command(NULL, "show loops") != 0; ms++) {
		cr_assert_lt(ms, PATIENCE_MS, "saker does not answer");
		usleep(1000);
	}
}

static void
saker_begins(void)
{
	saker_begins_with("[saker]\nlog = warning\n");
	cr_assert_not_null(driver.report);
}

static void
saker_ends(void)
{
	void *code;

	cr_assert_eq(command(NULL, "quit"), 0);
	cr_assert_eq(pthread_join(saker, &code), 0);
	cr_assert_eq((intptr_t)code, EXIT_SUCCESS);
}

static void
device_is_removed(void)
{
	driver.report(driver.port, RTE_ETH_EVENT_INTR_RMV, driver.arg, NULL);
}

/* ethdev keeps the callbacks of a port that is closed, and calls them for the next port with its
 * number. */
Test(app_launcher, a_capture_ends_before_its_removed_port_is_closed, .timeout = 120)
{
	saker_begins();
	cr_assert_eq(command("Capturing", "capture start %s 0", frames), 0);
	device_is_removed();
	for (unsigned ms = 0; rte_eth_dev_is_valid_port(driver.port); ms++) {
		cr_assert_lt(ms, PATIENCE_MS, "saker does not close the port");
		usleep(1000);
	}
	command(NULL, "capture stop");
	cr_assert_eq(command("in use again", "port attach 0"), 0);
	cr_assert_eq(access(frames, R_OK), 0, "the file of the capture stays");
	unlink(frames);
	cr_assert_eq(command("Capturing", "capture start %s 0", frames), 0);
	cr_assert_eq(command("written", "capture stop"), 0);
	saker_ends();
}

Test(app_launcher, a_capture_of_a_removed_port_is_refused, .timeout = 120)
{
	saker_begins();
	device_is_removed();
	cr_assert_eq(command("the device of port 0 was removed", "capture start %s 0", frames), 1);
	cr_assert_neq(access(frames, F_OK), 0, "a file without a capture");
	cr_assert_eq(command("no capture runs", "capture stop"), 1);
	saker_ends();
}

Test(app_launcher, a_capture_without_a_callback_is_refused, .timeout = 120)
{
	saker_begins();
	driver.full = true;
	cr_assert_eq(command("the frames of port 0 cannot be captured: Cannot allocate memory",
			     "capture start %s 0", frames),
		1);
	cr_assert_neq(access(frames, F_OK), 0, "a file without a capture");
	driver.full = false;
	cr_assert_eq(command("Capturing", "capture start %s 0", frames), 0);
	cr_assert_eq(command("written", "capture stop"), 0);
	saker_ends();
}

/* ---- Names of ports ---- */

static void
answers_to(const char *port)
{
	cr_assert_eq(command("10.0.0.1/24", "show port info %s", port), 0);
	cr_assert_eq(command("rx packets", "show port stats %s", port), 0);
	cr_assert_eq(command("cleared", "clear port stats %s", port), 0);
	cr_assert_eq(command("was not removed", "port attach %s", port), 1);
	cr_assert_eq(
		command("Capturing the frames of port 5 ", "capture start %s %s", frames, port), 0);
	cr_assert_eq(command("written", "capture stop"), 0);
	unlink(frames);
}

static void
is_no_port(const char *port)
{
	char refusal[64];

	snprintf(refusal, sizeof(refusal), "there is no port '%s'", port);
	cr_assert_eq(command(refusal, "show port info %s", port), 1);
	cr_assert_eq(command(refusal, "show port stats %s", port), 1);
	cr_assert_eq(command(refusal, "clear port stats %s", port), 1);
	cr_assert_eq(command(refusal, "port attach %s", port), 1);
	cr_assert_eq(command(refusal, "capture start %s %s", frames, port), 1);
}

/* DPDK's number of the device is 0, and so is the engine's index of the port. */
Test(app_launcher, a_command_names_a_port_as_the_configuration_does_sakerctl_8, .timeout = 120)
{
	static const char *const other[] = {"0", "5x", "5k", "-5", "+5", "0x", "4294967301", "net"};

	saker_begins_with("[saker]\nlog = warning\n[port 5]\ndevice = net_null0\n");
	answers_to("5");
	answers_to("0x5");
	answers_to("net_null0");
	cr_assert_eq(command("Capturing the frames of port 5 ", "capture start %s", frames), 0);
	cr_assert_eq(command("written", "capture stop"), 0);
	unlink(frames);
	cr_assert_eq(command("port        5", "show port stats all"), 0);
	for (unsigned i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		is_no_port(other[i]);
	saker_ends();
}

Test(app_launcher, the_number_of_an_object_is_digits_alone_sakerctl_8, .timeout = 120)
{
	static const char *const wrong[] = {"1k", "-1", "+1", "1x", "0x", "4294967296"};

	saker_begins_with("[saker]\nlog = warning\n");
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		cr_assert_eq(command("is neither 'all' nor a QPN", "show qp %s", wrong[i]), 1);
		cr_assert_eq(command("nor the number of a client", "show client %s", wrong[i]), 1);
		cr_assert_eq(command("there is no connected QP", "show events %s", wrong[i]), 1);
	}
	cr_assert_eq(command("there is no QP '0xff'", "show qp 0xff"), 1);
	cr_assert_eq(command("there is no client '77'", "show client 77"), 1);
	saker_ends();
}

/* ---- Reloads of machines ---- */

static unsigned deleted; /* atomic: calls of gw_vm_del() */

int __real_gw_vm_del(struct gw *g, const char *name);
int __wrap_gw_vm_del(struct gw *g, const char *name);

int
__wrap_gw_vm_del(struct gw *g, const char *name)
{
	__atomic_fetch_add(&deleted, 1, __ATOMIC_RELAXED);
	return __real_gw_vm_del(g, name);
}

/* Returns the configuration of a gateway with the machine [vm N]. */
static const char *
machine(unsigned n, const char *name)
{
	static char text[512];

	snprintf(text, sizeof(text),
		"[saker]\nlog = warning\n[gateway]\nenabled = yes\nmbufs = 1024\n"
		"[vm %u]\nname = %s\npath = %s\nip = 10.0.0.2/24\nsize = 2m\nslots = 1\n"
		"qps = 8\nmrs = 8\nmbufs = 256\n",
		n, name, memory);
	return text;
}

static void
reload(const char *text)
{
	FILE *f = fopen(config, "we");

	cr_assert_not_null(f);
	fputs(text, f);
	cr_assert_eq(fclose(f), 0);
	cr_assert_eq(command(NULL, "reload"), 0);
}

static bool
machine_exists(const char *name)
{
	struct cmd_answer answer;
	bool found;

	cr_assert_eq(cmd_ask(control, "text", "show vms", &answer), 0);
	found = strstr(answer.text, name) != NULL;
	free(answer.text);
	return found;
}

Test(app_launcher, a_machine_goes_on_under_another_number, .timeout = 120)
{
	saker_begins_with(machine(0, "web1"));
	cr_assert(machine_exists("web1"));
	reload(machine(1, "web1"));
	cr_assert_eq(__atomic_load_n(&deleted, __ATOMIC_RELAXED), 0, "it was removed");
	cr_assert(machine_exists("web1"));
	saker_ends();
	unlink(memory);
}

Test(app_launcher, a_machine_waits_for_the_end_of_one_that_it_replaces, .timeout = 120)
{
	saker_begins_with(machine(0, "web1"));
	reload(machine(0, "web2"));
	for (unsigned ms = 0; !machine_exists("web2") || machine_exists("web1"); ms++) {
		cr_assert_lt(ms, PATIENCE_MS, "the machine is not replaced");
		usleep(1000);
	}
	cr_assert_eq(__atomic_load_n(&deleted, __ATOMIC_RELAXED), 1);
	saker_ends();
	unlink(memory);
}

/* ---- Values that a command has set ---- */

Test(app_launcher, a_reload_takes_back_the_log_level_of_a_command, .timeout = 120)
{
	saker_begins_with("");
	cr_assert_eq(command(NULL, "log debug"), 0);
	cr_assert_eq(rte_log_get_level(rte_log_register("user.saker")), (int)RTE_LOG_DEBUG);
	reload("");
	cr_assert_eq(rte_log_get_level(rte_log_register("user.saker")), (int)RTE_LOG_NOTICE);
	saker_ends();
}
