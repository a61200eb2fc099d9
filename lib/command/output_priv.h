/* SPDX-License-Identifier: BSD-3-Clause */
/* The output as a tree of values, which output.c builds and text.c and json.c print. */
#ifndef SAKER_COMMAND_OUTPUT_PRIV_H
#define SAKER_COMMAND_OUTPUT_PRIV_H

#include "output.h"

enum node_kind { NODE_RECORD, NODE_LIST, NODE_TEXT, NODE_NUMBER, NODE_FLAG, NODE_SENTENCE };

struct node {
	enum node_kind kind;
	const char *key;
	struct node *parent, *next, *first, *last;
	uint64_t number; /* NODE_NUMBER, NODE_FLAG */
	char text[];     /* NODE_TEXT, NODE_SENTENCE */
};

#define REFUSAL_LEN 1024

struct cmd_out {
	struct node *root; /* NODE_RECORD */
	struct node *at;   /* the record or list that cmd_end() ends next */
	bool refused;
	char refusal[REFUSAL_LEN];
};

/* Returns whether a node is a record or a list. */
static inline bool
node_nests(const struct node *n)
{
	return n->kind == NODE_RECORD || n->kind == NODE_LIST;
}

#endif
