/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAKER_TEST_FAKE_CONTROL_H
#define SAKER_TEST_FAKE_CONTROL_H

#include "../../../lib/engine/control/control.h"

struct eng_control {
	struct eng_control_args args;
};

#endif
