/* Arrays in parts: concatenated along their first dimension, and cut again. */
#include "values.h"

static bool push_start(Values *values, int64_t start) {
    if (!vector_reserve(&values->starts, 1, sizeof start)) return fail(values, NO_MEMORY);
    ((int64_t *)values->starts.items)[values->starts.count++] = start;
    return true;
}

int32_t joined(Values *values, const OpenCall *open, int64_t row) {
    int64_t count = operand_count(values, row), start = 0;
    if (count < 2 || values->in.lows[form_at(values, row)] == 0) return make_node(values, open, row);
    for (int64_t number = 0; number < count; number++) { /* as the reference: nodes stay that were made before a missing size */
        int64_t operand = operand_row(values, open, row, number);
        if (operand == NONE || values->in.dimensions[head_at(values, operand)] < 0) {
            fail(values, REFUSED);
            return NO_VALUE;
        }
    }
    int32_t value = new_tuple(values, (size_t)count);
    int32_t starts = (int32_t)values->starts.count;
    for (int64_t number = 0; number < count && values->result == READ; number++) {
        int64_t operand = operand_row(values, open, row, number);
        if (!push_start(values, start)) break;
        size_t mark = values->made.count;
        add_operand(values, open, row, number);
        set_item(values, value, (int32_t)number, node_of(values, open, row, mark, (int)values->in.passing_kind));
        int64_t size = values->in.dimensions[head_at(values, operand)];
        if (size > INT64_MAX - start) fail(values, REFUSED);
        else start += size;
    }
    Composite *own = composite_of(values, value);
    if (own != NULL) {
        own->starts = starts;
        own->stop = start;
    }
    return value;
}

/* Return how many parts start at `limit` or before. */
static int32_t starts_up_to(const Values *values, int32_t sliced, int64_t limit) {
    int32_t low = 0, high = composite_of(values, sliced)->count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (start_of(values, sliced, middle) <= limit) low = middle + 1;
        else high = middle;
    }
    return low;
}

int32_t cut(Values *values, const OpenCall *open, int64_t row) {
    int32_t whole = operand_value(values, open, row, 0), form = form_at(values, row);
    int64_t low = values->in.lows[form], high = values->in.highs[form];
    if (!is_sliced(values, whole) || low < 0) return make_node(values, open, row);
    int32_t first = starts_up_to(values, whole, low), last = high > INT64_MIN ? starts_up_to(values, whole, high - 1) : 0;
    size_t mark = values->made.count;
    for (int32_t place = first > 0 ? first - 1 : 0; place < last; place++) add_nodes(values, item_of(values, whole, place));
    return node_of(values, open, row, mark, (int)values->in.passing_kind);
}

static bool have_equal_starts(const Values *values, int32_t left, int32_t right) {
    const Composite *one = composite_of(values, left), *other = composite_of(values, right);
    if (one->count != other->count) return false;
    for (int32_t place = 0; one->starts != other->starts && place < one->count; place++) {
        if (start_of(values, left, place) != start_of(values, right, place)) return false;
    }
    return true;
}

/* Return the first operand in parts if the others have the same ones, and the result too. NO_VALUE if none is in parts. */
static int32_t operand_in_parts(const Values *values, const OpenCall *open, int64_t row, int64_t *size, bool *fits) {
    int64_t count = operand_count(values, row);
    int32_t first = NO_VALUE;
    *size = 0;
    *fits = true;
    for (int64_t number = 0; number < count; number++) {
        int32_t value = operand_value(values, open, row, number);
        if (value >= 0 || value == NO_VALUE) continue;
        if (!is_sliced(values, value)) {
            *fits = false;
            return NO_VALUE;
        }
        if (first == NO_VALUE) first = value;
        *size += composite_of(values, value)->count;
        *fits = *fits && have_equal_starts(values, first, value);
    }
    if (first != NO_VALUE) *fits = *fits && values->in.dimensions[head_at(values, row)] == composite_of(values, first)->stop;
    return first;
}

int32_t in_parts(Values *values, const OpenCall *open, int64_t row) {
    int64_t size = 0, count = operand_count(values, row);
    bool fits = true;
    int32_t first = operand_in_parts(values, open, row, &size, &fits);
    if (!fits || first == NO_VALUE || size > values->left) return make_node(values, open, row);
    values->left -= size;
    int32_t parts = composite_of(values, first)->count;
    int32_t value = new_tuple(values, (size_t)parts);
    for (int32_t part = 0; part < parts && values->result == READ; part++) {
        size_t mark = values->made.count;
        for (int sliced = 0; sliced < 2; sliced++) { /* whole operands come first */
            for (int64_t number = 0; number < count; number++) {
                int32_t operand = operand_value(values, open, row, number);
                if (is_sliced(values, operand) != (sliced == 1)) continue;
                add_nodes(values, sliced == 1 ? item_of(values, operand, part) : operand);
            }
        }
        set_item(values, value, part, node_of(values, open, row, mark, head_kind(values, row)));
    }
    Composite *own = composite_of(values, value);
    if (own != NULL) {
        own->starts = composite_of(values, first)->starts;
        own->stop = composite_of(values, first)->stop;
    }
    return value;
}

