/* The graph of the values of one step: the arrays that each array is made of.

   `graph/graph_reader.py` says what every function here does; both number nodes alike. What a row does with the values of its
   operands, and the kind of a node, are numbers that the caller gives for each head: this code knows no opcode. */
#ifndef HLO_VALUES_H
#define HLO_VALUES_H

#include "edges.h"
#include "reader.h"

/* What a row does. */
enum {
    MAKES,       /* one node of all operands */
    IS_INPUT,    /* the argument of its number */
    TAKES,       /* an element of a tuple */
    PACKS,       /* a tuple of all operands */
    PASSES_ALL,  /* its only operand, or a tuple of all */
    PASSES,      /* its first operand */
    RESHAPES,    /* its first operand; one node if that is in parts, and the first dimension changes */
    IS_NOTHING,  /* no data */
    CALLS,       /* the result of a computation */
    LOOPS,       /* a state that a computation changes */
    BRANCHES,    /* the result of one of several computations */
    JOINS,       /* an array in parts, a part for each operand */
    CUTS,        /* parts of its operand */
    KEEPS_PARTS, /* a node for each part of its operands */
    MAKES_EACH,  /* a node for each operand */
    MAY_SCALE,   /* one node, of no kind if an operand is a scalar */
    BY_FORM      /* its operands, or one node of a kind: its attributes decide */
};

/* Columns of the rows, and what the caller knows of heads and forms of attributes. */
typedef struct {
    Edges rows, calls; /* operands, and names of called computations */
    const int32_t *heads, *forms, *tails;
    const uint8_t *roles;
    int64_t head_count;
    const uint8_t *actions, *kinds, *scalars; /* by head */
    const uint64_t *called; /* by head: the roles of the computations that count, as bits */
    const int64_t *dimensions; /* by head: the first dimension, or -1 */
    Edges inputs; /* by head: the shape of a tuple: for each element its number of elements, or -1 for an array */
    int64_t form_count;
    const int64_t *lows, *highs; /* by form */
    int64_t computation_count;
    const int32_t *first_rows, *roots;
    int64_t name_count;
    const int32_t *defined; /* by name: the computation */
    const uint8_t *text;
    int64_t text_size;
    int64_t entry, most_rows, most_calls, most_joined, passing_kind, input_kind;
} ValueInputs;

/* A value: a node, NO_VALUE, or a composite: a tuple, or an array in parts. */
enum { NO_VALUE = -1 };

typedef struct {
    int32_t start, count; /* of its items */
    int32_t starts;       /* of the starts of its parts; NONE for a tuple */
    int32_t joined;       /* the node of the whole, for operations that take it whole; NONE before */
    int32_t reshaped;     /* the node of the whole with other dimensions; NONE before */
    int64_t stop;
} Composite;

typedef struct {
    int32_t computation, caller, caller_row;
    int32_t first, stop;     /* its nodes */
    int32_t values;          /* the first of its rows' values */
    int32_t child, last_child, next; /* the calls that it makes, and the next one of its caller */
} Call;

/* A call that is being read. */
typedef struct {
    int32_t call;
    int32_t row;       /* in the computation */
    int32_t arguments; /* a tuple, or NO_VALUE for inputs */
    int32_t pending;   /* calls of the current row; 0 if it makes none */
    int32_t done;      /* of these */
} OpenCall;

typedef struct {
    ValueInputs in;
    Result result;
    int64_t left;      /* rows that may still be read */
    int32_t is_ordered, is_whole;
    Vector ends, operands, kinds, call_of, row_of;  /* of nodes */
    Vector late_nodes, late_operands; /* operands that loops add, in order */
    Vector calls, values, composites, items, starts;
    Vector stack, results, made, waiting;
    Vector composite_numbers, stops; /* the composites, for the caller: start, count and starts of each; stop */
    uint8_t *is_open; /* by computation */
} Values;

/* -- values.c: nodes and values -- */

bool fail(Values *values, Result result);
Composite *composite_of(const Values *values, int32_t value);
int32_t node_count(const Values *values);

/* Make a node of the nodes in `made` from `mark` on, which are removed. */
int32_t new_node(Values *values, int32_t call, int32_t row, size_t mark, int kind);
int32_t new_tuple(Values *values, size_t count);
void set_item(Values *values, int32_t composite, int32_t place, int32_t value);
int32_t item_of(const Values *values, int32_t composite, int32_t place);
int64_t start_of(const Values *values, int32_t composite, int32_t place);

/* Add the nodes of a value to `made`. */
void add_nodes(Values *values, int32_t value);

/* Add the nodes of a value that is used as a whole: one node for many. */
void add_whole(Values *values, int32_t value, int32_t call, int32_t row);

/* -- operations.c: rows that make no call -- */

/* The first row of a computation in the columns, and the number of its rows; 0 for what is no computation. */
int64_t first_row(const Values *values, int32_t computation);
int64_t row_count(const Values *values, int32_t computation);

Call *call_at(const Values *values, int32_t call);
int32_t head_at(const Values *values, int64_t row);
int head_kind(const Values *values, int64_t row);
int32_t form_at(const Values *values, int64_t row);
int64_t operand_count(const Values *values, int64_t row);

/* Return the row that defines an operand, in the columns; NONE if there is none in the computation. */
int64_t operand_row(const Values *values, const OpenCall *open, int64_t row, int64_t number);
int32_t operand_value(const Values *values, const OpenCall *open, int64_t row, int64_t number);
bool is_sliced(const Values *values, int32_t value);
int32_t tuple_of_operands(Values *values, const OpenCall *open, int64_t row);

/* Add an operand, or all, that are used as a whole. */
void add_operand(Values *values, const OpenCall *open, int64_t row, int64_t number);
void add_operands(Values *values, const OpenCall *open, int64_t row);

/* Make a node of what was added to `made` since `mark`, or of all operands. */
int32_t node_of(Values *values, const OpenCall *open, int64_t row, size_t mark, int kind);
int32_t make_of_kind(Values *values, const OpenCall *open, int64_t row, int kind);
int32_t make_node(Values *values, const OpenCall *open, int64_t row);

/* Return the value of a row that makes no call. */
int32_t value_of_row(Values *values, const OpenCall *open, int64_t row, int action);

/* -- parts.c: arrays in parts, whose rows join, cut or keep parts -- */

int32_t joined(Values *values, const OpenCall *open, int64_t row);
int32_t cut(Values *values, const OpenCall *open, int64_t row);
int32_t in_parts(Values *values, const OpenCall *open, int64_t row);

/* -- calls.c -- */

/* Read the step, all calls that it makes included. */
void read_step(Values *values);

#endif
