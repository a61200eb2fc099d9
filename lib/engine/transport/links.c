/* SPDX-License-Identifier: BSD-3-Clause */
/* The transports of a transport stage. */
#include "link.h"

const struct eng_link *const eng_links[ENG_KINDS] = {
	[ENG_IWARP] = &eng_link_iwarp,
	[ENG_FALCON] = &eng_link_falcon,
};
