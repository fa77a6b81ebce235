/* What recording leaves and planning reads. */
#ifndef TTN_GRAPH_IMPL_H
#define TTN_GRAPH_IMPL_H

#include <stdint.h>
#include "autograd/graph.h"
#include "autograd/op.h"

typedef enum { TTN_NO_LEAF, TTN_LEAF_INPUT, TTN_LEAF_PARAM, TTN_LEAF_STATE } ttn_leaf;

enum { TTN_NO_NODE = -1, TTN_NO_BLOCK = 0 };

typedef struct {
    ttn_desc desc;
    int node;       /* the node that computes it, TTN_NO_NODE for a leaf */
    int output;     /* which of that node's */
    int root;       /* the value whose storage it is: itself, or what was detached */
    int needs_grad; /* a parameter that is not frozen leads here */
    ttn_leaf leaf;
    char *name;     /* owned; NULL: the root's */
    uint64_t hash;  /* of the name */
    ttn_init init;  /* of a parameter */
    unsigned flags; /* TTN_FROZEN, TTN_NO_DECAY */
} ttn_value;

typedef struct {
    const ttn_op *op;
    ttn_sig sig;
    void *attr;         /* owned; sig.attr points here */
    int in[TTN_MAX_IN]; /* values; TTN_NONE: left out */
    int out;            /* the first output's value; the others follow it */
    int block;          /* TTN_NO_BLOCK, or the number of the marked block it stands in */
    char *name;         /* owned */
    uint64_t hash;
} ttn_node;

/* Names by their hash: open addressing, room a power of two. */
typedef struct {
    uint64_t hash;
    int number; /* of a leaf's value or of a node; -1: a free place */
} ttn_name_slot;

typedef struct {
    ttn_name_slot *slot;
    int64_t n, room;
} ttn_name_table;

enum { TTN_MAX_SCOPES = 16, TTN_MAX_NAME = 256 };

struct ttn_graph {
    ttn_extent cap;
    ttn_value *value;
    int n_value, value_room;
    ttn_node *node;
    int n_node, node_room;
    int block, n_block;               /* the open block, or TTN_NO_BLOCK; how many there have been */
    char scope[TTN_MAX_NAME];         /* "layer.0." */
    size_t scope_end[TTN_MAX_SCOPES]; /* its length before each open scope */
    int n_scope;
    ttn_name_table leaf_names, node_names;
    ttn_name_table next_number; /* of nodes named by the graph: hash of the full name without number, next number */
    int sealed;                 /* a plan holds it: nothing can be recorded any more */
    ttn_error error;            /* the first failure; builders stick after it */
};

/* ttn_apply for a descriptor that may not be in the registry: the ops of tests. */
int ttn_apply_op(ttn_graph *g, const ttn_op *op, const char *node, const void *attr, const int *in);

/* Inputs of node n that gradients go back through. */
uint32_t ttn_node_wanted(const ttn_graph *g, const ttn_node *n);

#endif
