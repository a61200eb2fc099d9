/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds a probe in the section that the probes of the program form. */
#include "probe.h"

/* Both are distances in bytes from the field itself, so that the table needs no relocation. */
struct sk_probe_site {
	int32_t load, missing;
};

/* Defined by the linker. They are NULL in a program without a probe. */
extern const struct sk_probe_site __start_sk_probes[] __attribute__((weak, visibility("hidden")));
extern const struct sk_probe_site __stop_sk_probes[] __attribute__((weak, visibility("hidden")));

static uintptr_t
probe_target(const int32_t *distance)
{
	return (uintptr_t)distance + (uintptr_t)(intptr_t)*distance;
}

uintptr_t
sk_probe_landing(uintptr_t pc)
{
	for (const struct sk_probe_site *s = __start_sk_probes; s < __stop_sk_probes; s++)
		if (probe_target(&s->load) == pc)
			return probe_target(&s->missing);
	return 0;
}
