/* Nodes and values. */
#include "values.h"

#include <string.h>

enum { MOST_ITEMS = 1 << 28 };

bool fail(Values *values, Result result) {
    if (values->result == READ) values->result = result;
    return false;
}

Call *call_at(const Values *values, int32_t call) {
    return call >= 0 && (size_t)call < values->calls.count ? (Call *)values->calls.items + call : NULL;
}

Composite *composite_of(const Values *values, int32_t value) {
    int64_t index = -2 - (int64_t)value;
    return index >= 0 && (size_t)index < values->composites.count ? (Composite *)values->composites.items + index : NULL;
}

int32_t node_count(const Values *values) { return (int32_t)values->kinds.count; }

static void push(Values *values, Vector *vector, int32_t number) {
    if (vector->count >= MOST_ITEMS) fail(values, REFUSED);
    else if (!push_number(vector, number)) fail(values, NO_MEMORY);
}

int32_t new_node(Values *values, int32_t call, int32_t row, size_t mark, int kind) {
    int32_t node = node_count(values);
    const int32_t *made = values->made.items;
    size_t count = values->made.count - mark;
    if (values->operands.count > MOST_ITEMS || count > MOST_ITEMS) {
        fail(values, REFUSED);
        return NO_VALUE;
    }
    if (!vector_reserve(&values->operands, count, sizeof(int32_t))) fail(values, NO_MEMORY);
    else if (count > 0) {
        memcpy((int32_t *)values->operands.items + values->operands.count, made + mark, count * sizeof(int32_t));
        values->operands.count += count;
    }
    vector_cut(&values->made, mark);
    if (!push_byte(&values->kinds, (uint8_t)kind)) fail(values, NO_MEMORY);
    push(values, &values->ends, (int32_t)values->operands.count);
    push(values, &values->call_of, call);
    push(values, &values->row_of, row);
    return values->result == READ ? node : NO_VALUE;
}

int32_t new_tuple(Values *values, size_t count) {
    size_t number = values->composites.count, start = values->items.count;
    if (start + count > MOST_ITEMS || number > MOST_ITEMS) {
        fail(values, REFUSED);
        return NO_VALUE;
    }
    if (!vector_reserve(&values->items, count, sizeof(int32_t)) || !vector_reserve(&values->composites, 1, sizeof(Composite))) {
        fail(values, NO_MEMORY);
        return NO_VALUE;
    }
    int32_t *items = values->items.items;
    for (size_t item = start; item < start + count; item++) items[item] = NO_VALUE;
    values->items.count += count;
    ((Composite *)values->composites.items)[number] = (Composite){(int32_t)start, (int32_t)count, NONE, NONE, NONE, 0};
    values->composites.count++;
    return -2 - (int32_t)number;
}

void set_item(Values *values, int32_t composite, int32_t place, int32_t value) {
    const Composite *own = composite_of(values, composite);
    if (own != NULL && place >= 0 && place < own->count) ((int32_t *)values->items.items)[own->start + place] = value;
}

int32_t item_of(const Values *values, int32_t composite, int32_t place) {
    const Composite *own = composite_of(values, composite);
    if (own == NULL || place < 0 || place >= own->count) return NO_VALUE;
    return number_at(&values->items, (size_t)(own->start + place));
}

int64_t start_of(const Values *values, int32_t composite, int32_t place) {
    const Composite *own = composite_of(values, composite);
    if (own == NULL || own->starts == NONE || place < 0 || place >= own->count) return 0;
    size_t index = (size_t)own->starts + (size_t)place;
    return index < values->starts.count ? ((const int64_t *)values->starts.items)[index] : 0;
}

void add_nodes(Values *values, int32_t value) {
    if (value >= 0) {
        push(values, &values->made, value);
        return;
    }
    vector_cut(&values->waiting, 0);
    push(values, &values->waiting, value);
    while (values->waiting.count > 0 && values->result == READ) {
        int32_t top = number_at(&values->waiting, values->waiting.count - 1);
        values->waiting.count--;
        if (top >= 0) push(values, &values->made, top);
        const Composite *own = composite_of(values, top);
        for (int32_t place = own == NULL ? 0 : own->count; place > 0; place--) {
            push(values, &values->waiting, item_of(values, top, place - 1));
        }
    }
}

void add_whole(Values *values, int32_t value, int32_t call, int32_t row) {
    size_t mark = values->made.count;
    add_nodes(values, value);
    Composite *own = composite_of(values, value);
    if (own == NULL || values->made.count - mark <= (size_t)values->in.most_joined) return;
    if (own->joined == NONE) own->joined = new_node(values, call, row, mark, (int)values->in.passing_kind);
    vector_cut(&values->made, mark);
    push(values, &values->made, own->joined);
}
