/* The graph as columns. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    size_t offset; /* of the vector */
    int32_t width; /* of its items */
    int32_t numbers; /* of which the caller sees several for each item */
} ValueColumn;

#define COLUMN(name, width, numbers) {offsetof(Values, name), width, numbers}

static const ValueColumn VALUE_COLUMNS[] = {
    COLUMN(ends, 4, 1), COLUMN(operands, 4, 1), COLUMN(kinds, 1, 1), COLUMN(call_of, 4, 1), COLUMN(row_of, 4, 1),
    COLUMN(calls, 4, sizeof(Call) / 4), COLUMN(values, 4, 1), COLUMN(composite_numbers, 4, 1), COLUMN(stops, 8, 1),
    COLUMN(items, 4, 1), COLUMN(starts, 8, 1),
};

enum { COUNT = sizeof VALUE_COLUMNS / sizeof *VALUE_COLUMNS };

static const Vector *vector_of(const Values *values, size_t index) {
    return (const Vector *)(const void *)((const char *)values + VALUE_COLUMNS[index].offset);
}

/* Put the operands that loops add behind the others of their nodes. */
static bool merge_late(Values *values) {
    size_t late = values->late_nodes.count, nodes = values->kinds.count, count = values->operands.count;
    if (late == 0) return true;
    Vector merged = {0}, filled = {0};
    bool has_memory = vector_reserve(&merged, count + late, sizeof(int32_t)) && vector_reserve(&filled, nodes, sizeof(int32_t));
    if (!has_memory) {
        vector_free(&merged);
        vector_free(&filled);
        return false;
    }
    int32_t *added = filled.items, *ends = values->ends.items, *target = merged.items;
    memset(added, 0, nodes * sizeof *added);
    for (size_t index = 0; index < late; index++) added[number_at(&values->late_nodes, index)]++;
    size_t start = 0, at = 0;
    for (size_t node = 0; node < nodes; node++) {
        size_t own = (size_t)ends[node] - start;
        if (own > 0) memcpy(target + at, (int32_t *)values->operands.items + start, own * sizeof *target);
        start = (size_t)ends[node];
        at += own;
        size_t more = (size_t)added[node];
        added[node] = (int32_t)at; /* the place of its next late operand */
        at += more;
        ends[node] = (int32_t)at;
    }
    for (size_t index = 0; index < late; index++) {
        target[added[number_at(&values->late_nodes, index)]++] = number_at(&values->late_operands, index);
    }
    merged.count = at;
    vector_free(&values->operands);
    vector_free(&filled);
    values->operands = merged;
    return true;
}

/* Fill the columns of the composites. */
static bool list_composites(Values *values) {
    size_t count = values->composites.count;
    if (!vector_reserve(&values->stops, count, sizeof(int64_t))) return false;
    for (size_t index = 0; index < count; index++) {
        Composite own = ((const Composite *)values->composites.items)[index];
        Vector *numbers = &values->composite_numbers;
        bool is_added = push_number(numbers, own.start) && push_number(numbers, own.count) && push_number(numbers, own.starts);
        if (!is_added) return false;
        ((int64_t *)values->stops.items)[index] = own.stop;
    }
    values->stops.count = count;
    return true;
}

Values *hlo_values_begin(const ValueInputs *inputs) {
    Values *values = calloc(1, sizeof *values);
    if (values == NULL) return NULL;
    values->in = *inputs;
    values->left = inputs->most_rows;
    values->is_ordered = values->is_whole = 1;
    values->is_open = calloc((size_t)inputs->computation_count + 1, 1);
    bool is_sound = inputs->head_count > 0 && inputs->form_count > 0 && inputs->text_size >= 0 && inputs->text_size <= MAX_TEXT;
    if (values->is_open == NULL) fail(values, NO_MEMORY);
    else if (!is_sound) fail(values, REFUSED);
    else read_step(values);
    if (values->result == READ && (!merge_late(values) || !list_composites(values))) fail(values, NO_MEMORY);
    return values;
}

Result hlo_values_result(const Values *values) { return values->result; }

int32_t hlo_values_flags(const Values *values) { return values->is_ordered | values->is_whole << 1; }

int32_t hlo_values_lengths(const Values *values, int64_t *counts, int32_t *widths) {
    for (size_t index = 0; index < COUNT; index++) {
        counts[index] = (int64_t)vector_of(values, index)->count * VALUE_COLUMNS[index].numbers;
        widths[index] = VALUE_COLUMNS[index].width;
    }
    return COUNT;
}

void hlo_values_take(const Values *values, void *const *destinations) {
    for (size_t index = 0; index < COUNT; index++) {
        const Vector *vector = vector_of(values, index);
        size_t width = (size_t)VALUE_COLUMNS[index].width * (size_t)VALUE_COLUMNS[index].numbers;
        if (vector->count > 0) memcpy(destinations[index], vector->items, vector->count * width);
    }
}

void hlo_values_end(Values *values) {
    if (values == NULL) return;
    Vector *others[] = {&values->late_nodes, &values->late_operands, &values->composites, &values->stack, &values->results,
        &values->made, &values->waiting};
    for (size_t index = 0; index < COUNT; index++) {
        vector_free((Vector *)(void *)((char *)values + VALUE_COLUMNS[index].offset));
    }
    for (size_t index = 0; index < sizeof others / sizeof *others; index++) vector_free(others[index]);
    free(values->is_open);
    free(values);
}
