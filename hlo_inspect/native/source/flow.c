#include "flow.h"

static bool applies(const Rule *rule, uint64_t own, uint64_t merged, uint64_t kind) {
    return (own & (rule->has | rule->lacks)) == rule->has &&
           (merged & (rule->operands_have | rule->operands_lack)) == rule->operands_have &&
           (kind & (rule->kind_has | rule->kind_lacks)) == rule->kind_has;
}

void hlo_spread_on(const Edges *edges, const uint8_t *kinds, uint64_t *bits, const Spread *spread) {
    for (int64_t node = 0; node < edges->count; node++) {
        Places places = operand_places(edges, node);
        uint64_t merged = 0;
        for (int64_t place = places.start; place < places.end; place++) {
            int64_t operand = operand_at(edges, place);
            if (operand >= 0) merged |= bits[operand];
        }
        uint64_t own = bits[node] | (merged & spread->passed);
        for (int32_t index = 0; index < spread->rule_count; index++) {
            if (applies(&spread->rules[index], own, merged, kinds[node])) own |= spread->rules[index].takes;
        }
        bits[node] = own & spread->kept;
    }
}

void hlo_spread_back(const Edges *edges, const uint8_t *kinds, uint64_t *bits, const Spread *spread) {
    for (int64_t node = edges->count - 1; node >= 0; node--) {
        uint64_t own = bits[node], given = own & spread->passed;
        for (int32_t index = 0; index < spread->rule_count; index++) {
            if (!applies(&spread->rules[index], own, 0, kinds[node])) continue;
            own |= spread->rules[index].takes;
            given |= spread->rules[index].gives;
        }
        bits[node] = own & spread->kept;
        if (given == 0) continue;
        Places places = operand_places(edges, node);
        for (int64_t place = places.start; place < places.end; place++) {
            int64_t operand = operand_at(edges, place);
            if (operand >= 0) bits[operand] |= given;
        }
    }
}
