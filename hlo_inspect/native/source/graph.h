/* The functions of the library for the graph of values. */
#ifndef HLO_GRAPH_H
#define HLO_GRAPH_H

#include "exported.h"
#include "values.h"

/* Read the graph of one step. The inputs stay the caller's. NULL without memory. */
EXPORTED Values *hlo_values_begin(const ValueInputs *inputs);

/* Return READ, or why there is no graph. */
EXPORTED Result hlo_values_result(const Values *values);

/* Return 1 if each node comes after its operands, and 2 more if all calls were read. */
EXPORTED int32_t hlo_values_flags(const Values *values);

/* Fill the number of items of each column, and the bytes of each item. Return the number of columns, at most MAX_COLUMNS. */
EXPORTED int32_t hlo_values_lengths(const Values *values, int64_t *counts, int32_t *widths);

/* Copy all columns to buffers of these lengths. */
EXPORTED void hlo_values_take(const Values *values, void *const *destinations);

EXPORTED void hlo_values_end(Values *values);

#endif
