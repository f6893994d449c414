#include "marks.h"

#include <stdlib.h>
#include <string.h>

enum { GROUPS_AT_ONCE = 64 };

/* Fill `masks` with the groups from `first` on that each node leads to, a bit for each. */
static uint64_t fill_masks(const Edges *edges, const Edges *groups, int64_t first, uint64_t *masks) {
    memset(masks, 0, (size_t)edges->count * sizeof *masks);
    uint64_t whole = 0;
    for (int64_t group = first; group < groups->count && group < first + GROUPS_AT_ONCE; group++) {
        uint64_t bit = (uint64_t)1 << (group - first);
        whole |= bit;
        Places places = operand_places(groups, group);
        for (int64_t place = places.start; place < places.end; place++) {
            int64_t node = groups->operands[place];
            if (node >= 0 && node < edges->count) masks[node] |= bit;
        }
    }
    for (int64_t node = edges->count - 1; node >= 0; node--) {
        if (masks[node] == 0) continue;
        Places places = operand_places(edges, node);
        for (int64_t place = places.start; place < places.end; place++) {
            int64_t operand = operand_at(edges, place);
            if (operand >= 0) masks[operand] |= masks[node];
        }
    }
    return whole;
}

int32_t hlo_mark_leading_to_all(const Edges *edges, const Edges *groups, uint64_t *bits, uint64_t bit) {
    uint64_t *masks = malloc((size_t)edges->count * sizeof *masks + 1);
    uint8_t *misses = calloc((size_t)edges->count + 1, 1);
    bool has_memory = masks != NULL && misses != NULL;
    for (int64_t first = 0; has_memory && first < groups->count; first += GROUPS_AT_ONCE) {
        uint64_t whole = fill_masks(edges, groups, first, masks);
        for (int64_t node = 0; node < edges->count; node++) misses[node] |= masks[node] != whole;
    }
    for (int64_t node = 0; has_memory && node < edges->count; node++) {
        if (!misses[node]) bits[node] |= bit;
    }
    free(masks);
    free(misses);
    return has_memory;
}

typedef struct {
    uint64_t bits;
    uint32_t rest;
} Key;

static Key key_of(const Keys *keys, int64_t node) {
    int64_t part = keys->part_of == NULL ? node : keys->part_of[node];
    uint64_t bits = part >= 0 && part < keys->part_count ? keys->bits[part] : 0;
    Key key = {bits, (uint32_t)(keys->kinds[node] | keys->flags[node] << 8 | (node < keys->first) << 16)};
    return key;
}

static size_t hash_of(Key key) {
    uint64_t hash = (key.bits ^ ((uint64_t)key.rest << 40)) * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(hash ^ hash >> 32);
}

int64_t hlo_number_classes(const Keys *keys, int32_t *class_of, int32_t *firsts) {
    size_t room = 16;
    while (room < (size_t)keys->count * 2) room *= 2;
    int32_t *classes = malloc(room * sizeof *classes);
    if (classes == NULL) return -1;
    for (size_t place = 0; place < room; place++) classes[place] = -1;
    int64_t count = 0;
    for (int64_t node = 0; node < keys->count; node++) {
        Key key = key_of(keys, node);
        size_t place = hash_of(key) & (room - 1);
        while (classes[place] >= 0) { /* at least half of the places are free */
            Key other = key_of(keys, firsts[classes[place]]);
            if (other.bits == key.bits && other.rest == key.rest) break;
            place = (place + 1) & (room - 1);
        }
        if (classes[place] < 0) {
            classes[place] = (int32_t)count;
            firsts[count++] = (int32_t)node;
        }
        class_of[node] = classes[place];
    }
    free(classes);
    return count;
}

int64_t hlo_nodes_with(int64_t count, const uint64_t *bits, uint64_t has, uint64_t lacks, int32_t *nodes) {
    int64_t written = 0;
    for (int64_t node = 0; node < count; node++) {
        if ((bits[node] & (has | lacks)) == has) nodes[written++] = (int32_t)node;
    }
    return written;
}
