/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two whole instances as hostile clients, a hostile peer and a bad wire drive them: all stages,
 * both transports, no socket. The input is a program: the first byte chooses the configuration, and
 * the rest are steps (engine/steps.h). After each input the clients leave. Then no object, no
 * connection and no mbuf may be missing or left over.
 *
 * The instances live as long as the process, so a finding may depend on earlier inputs: keys and
 * generations go on. FUZZ_TRACE=1 prints the steps.
 */
#include <sanitizer/lsan_interface.h>

#include "engine/steps.h"

/* Inputs between two searches for leaks, which take much longer than an input. */
#define LEAKS 4096

static void
count(void *arg, const char *layer, const char *name, enum sk_severity sev, const char *help,
	uint64_t value)
{
	/* A state that the connection manager does not know is a fault of ours, whatever clients
	 * and peers do. */
	if (strcmp(name, "ENG_CM_STATE") == 0)
		*(uint64_t *)arg += value;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {.p = data, .len = size};
	struct world *world = world_enter(fuzz_byte(&in) % WORLD_KINDS);
	static unsigned runs;

	steps_run(world, &in, STEP_ENGINE_KINDS);
	steps_end();
	for (int i = 0; i < 2; i++) {
		uint64_t wrong = 0;

		eng_counters(world->e[i], count, &wrong);
		CLAIM(wrong == 0);
	}
	if (++runs % LEAKS == 0)
		CLAIM(__lsan_do_recoverable_leak_check() == 0);
	return 0;
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	world_eal();
	return 0;
}
