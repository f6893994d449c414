/* Bits of nodes that spread along the edges of a graph. What a bit means, the caller knows. */
#ifndef HLO_FLOW_H
#define HLO_FLOW_H

#include "edges.h"
#include "exported.h"

/* A change of a node whose bits, the joined bits of its operands, and kind have all bits of `has` and none of `lacks`. The node
   takes the bits `takes`; its operands, in a spread back, are given the bits `gives`. */
typedef struct {
    uint64_t has, lacks;
    uint64_t operands_have, operands_lack;
    uint64_t kind_has, kind_lacks;
    uint64_t takes, gives;
} Rule;

/* What happens at each node. Users take the bits `passed` of their operands, or in a spread back operands those of their users.
   The rules follow, one after the other. Of a node's bits those of `kept` stay when its operands have theirs. */
typedef struct {
    uint64_t passed;
    uint64_t kept;
    const Rule *rules;
    int32_t rule_count;
} Spread;

/* Spread bits from operands to users, in the order of the numbers. */
EXPORTED void hlo_spread_on(const Edges *edges, const uint8_t *kinds, uint64_t *bits, const Spread *spread);

/* Spread bits from users to operands, against the order of the numbers. */
EXPORTED void hlo_spread_back(const Edges *edges, const uint8_t *kinds, uint64_t *bits, const Spread *spread);

#endif
