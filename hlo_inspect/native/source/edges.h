/* The edges of a graph, and every read of them.

   Nodes are numbers below `count`. The operands of a node are those from `ends[node - 1]` to before `ends[node]`. Callers give
   the arrays with their lengths; what leads out of them is no edge. */
#ifndef HLO_EDGES_H
#define HLO_EDGES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int64_t count;
    const int32_t *ends;
    int64_t length; /* of `operands` */
    const int32_t *operands;
} Edges;

/* The places of one node's operands: from `start` to before `end`. */
typedef struct {
    int64_t start;
    int64_t end;
} Places;

static inline Places operand_places(const Edges *edges, int64_t node) {
    Places places = {0, 0};
    if (node < 0 || node >= edges->count) return places;
    int64_t start = node > 0 ? edges->ends[node - 1] : 0, end = edges->ends[node];
    if (start < 0 || end > edges->length || start > end) return places;
    places.start = start;
    places.end = end;
    return places;
}

/* Return the operand at a place that `operand_places` gave; -1 if it is no node. */
static inline int64_t operand_at(const Edges *edges, int64_t place) {
    int64_t operand = edges->operands[place];
    return operand >= 0 && operand < edges->count ? operand : -1;
}

#endif
