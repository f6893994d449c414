/* The order of a computation's rows in which operands come before their users. */
#ifndef HLO_ORDER_H
#define HLO_ORDER_H

#include "edges.h"
#include "exported.h"

/* Write the rows from `first` to before `last` as numbers from 0: rows that nothing uses, then `root`, each behind what it uses
   and was not written before; in a cycle the row that is met first comes last. `root` counts from 0 too. Return how many rows
   are written, 0 for rows that the edges do not have; -1 without memory. */
EXPORTED int64_t hlo_visit_rows(const Edges *edges, int64_t first, int64_t last, int64_t root, int32_t *order);

#endif
