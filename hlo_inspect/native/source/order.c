#include "order.h"

#include <stdlib.h>

/* A row whose operands are being visited, and the place of the next one. */
typedef struct {
    int64_t row;
    Places rest;
} Visit;

typedef struct {
    const Edges *edges;
    int64_t first, count;
    uint8_t *seen;
    Visit *waiting; /* each row waits once */
    int32_t *order;
    int64_t written;
} Walk;

static int64_t next_unseen(Walk *walk, Places *rest) {
    while (rest->start < rest->end) {
        int64_t operand = operand_at(walk->edges, rest->start++) - walk->first;
        if (operand >= 0 && operand < walk->count && !walk->seen[operand]) return operand;
    }
    return -1;
}

static void visit(Walk *walk, int64_t start) {
    int64_t depth = 0, row = start;
    if (walk->seen[start]) return;
    while (row >= 0) {
        walk->seen[row] = 1;
        walk->waiting[depth++] = (Visit){row, operand_places(walk->edges, walk->first + row)};
        row = -1;
        while (depth > 0 && row < 0) {
            row = next_unseen(walk, &walk->waiting[depth - 1].rest);
            if (row < 0) walk->order[walk->written++] = (int32_t)walk->waiting[--depth].row;
        }
    }
}

/* Visit the rows that nothing uses. */
static void visit_unused(Walk *walk, uint8_t *used, int64_t root) {
    int64_t last = walk->first + walk->count - 1;
    Places all = {operand_places(walk->edges, walk->first).start, operand_places(walk->edges, last).end};
    for (int64_t place = all.start; place < all.end; place++) {
        int64_t operand = operand_at(walk->edges, place) - walk->first;
        if (operand >= 0 && operand < walk->count) used[operand] = 1;
    }
    if (root >= 0 && root < walk->count) used[root] = 1;
    for (int64_t row = 0; row < walk->count; row++) {
        if (!used[row]) visit(walk, row);
    }
}

int64_t hlo_visit_rows(const Edges *edges, int64_t first, int64_t last, int64_t root, int32_t *order) {
    int64_t count = last - first;
    if (first < 0 || count <= 0 || last > edges->count) return 0;
    Walk walk = {edges, first, count, calloc((size_t)count, 2), calloc((size_t)count, sizeof(Visit)), order, 0};
    if (walk.seen != NULL && walk.waiting != NULL) {
        visit_unused(&walk, walk.seen + count, root);
        if (root >= 0 && root < count) visit(&walk, root);
        for (int64_t row = 0; row < count; row++) visit(&walk, row); /* rows that use themselves */
    } else {
        walk.written = -1;
    }
    free(walk.seen);
    free(walk.waiting);
    return walk.written;
}
