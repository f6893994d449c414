/* Nodes by their bits, and by what they lead to. */
#ifndef HLO_MARKS_H
#define HLO_MARKS_H

#include "edges.h"
#include "exported.h"

/* Give `bit` to each node that leads to a node of every group. The groups are as the operands of `Edges`; their nodes are
   numbers of `edges`. Return 0 without memory; no bit is then given. */
EXPORTED int32_t hlo_mark_leading_to_all(const Edges *edges, const Edges *groups, uint64_t *bits, uint64_t bit);

/* The columns that decide a node's class: the bits of its part (its own if `part_of` is NULL), its kind, its flags, and whether
   its number is below `first`. */
typedef struct {
    int64_t count;
    const int32_t *part_of;
    int64_t part_count;
    const uint64_t *bits;
    const uint8_t *kinds;
    const uint8_t *flags;
    int64_t first;
} Keys;

/* Number the nodes with equal keys, in the order of their first nodes, which go to `firsts`. Return the number of classes; -1
   without memory. */
EXPORTED int64_t hlo_number_classes(const Keys *keys, int32_t *class_of, int32_t *firsts);

/* Write the numbers of the nodes that have all bits of `has` and none of `lacks`. Return how many they are. */
EXPORTED int64_t hlo_nodes_with(int64_t count, const uint64_t *bits, uint64_t has, uint64_t lacks, int32_t *nodes);

#endif
