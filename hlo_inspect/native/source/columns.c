/* The columns as a list. */
#include "columns.h"
#include "library.h"

#include <string.h>

typedef struct {
    const char *name;
    size_t offset; /* of the vector in a reader */
    size_t width;
    bool is_kept; /* it has items for distinct texts, which stay if a computation is refused */
} Column;

#define NUMBERS(name) {#name, offsetof(Reader, columns.name), sizeof(int32_t), false}
#define BYTES(name) {#name, offsetof(Reader, columns.name), 1, false}
#define TEXTS(name) \
    {#name "_start", offsetof(Reader, name.starts), sizeof(int32_t), true}, \
    {#name "_length", offsetof(Reader, name.lengths), sizeof(int32_t), true}

static const Column COLUMNS[] = {
    NUMBERS(name_start), NUMBERS(name_end), NUMBERS(head), NUMBERS(tail_start), NUMBERS(attributes), NUMBERS(line_end),
    NUMBERS(operand_end), NUMBERS(operands), NUMBERS(call_end), NUMBERS(callee), BYTES(role), NUMBERS(attribute_form),
    NUMBERS(metadata), BYTES(row_flags), NUMBERS(row_class), NUMBERS(computation_name), NUMBERS(computation_line),
    NUMBERS(first_row), NUMBERS(root), NUMBERS(first_line_start), NUMBERS(first_line_end), NUMBERS(computation_end),
    NUMBERS(heads_form), NUMBERS(computation_class), BYTES(computation_flags), NUMBERS(head_row_end), NUMBERS(head_rows),
    {"defined", offsetof(Reader, columns.defined), sizeof(int32_t), true},
    TEXTS(heads), TEXTS(names), TEXTS(metadata), TEXTS(attribute_forms),
    {"form_bytes", offsetof(Reader, form_bytes), 1, true},
};

enum { COUNT = sizeof COLUMNS / sizeof *COLUMNS };

_Static_assert(sizeof COLUMNS / sizeof *COLUMNS <= MAX_COLUMNS, "MAX_COLUMNS is too small");

static Vector *vector_of(Reader *reader, size_t index) { return (Vector *)(void *)((char *)reader + COLUMNS[index].offset); }

void save_lengths(Reader *reader) {
    for (size_t index = 0; index < COUNT; index++) reader->lengths[index] = vector_of(reader, index)->count;
}

void drop_open(Reader *reader) {
    reader->is_open = false;
    for (size_t index = 0; index < COUNT; index++) {
        if (!COLUMNS[index].is_kept) vector_cut(vector_of(reader, index), reader->lengths[index]);
    }
}

void free_columns(Reader *reader) {
    for (size_t index = 0; index < COUNT; index++) {
        if (!COLUMNS[index].is_kept) vector_free(vector_of(reader, index));
    }
    vector_free(&reader->columns.defined);
}

/* Sort the rows by head. Counting keeps their order. */
static bool sort_rows(Reader *reader) {
    Columns *columns = &reader->columns;
    size_t heads = (size_t)interned_count(&reader->heads), rows = columns->head.count;
    vector_cut(&columns->head_row_end, 0);
    vector_cut(&columns->head_rows, 0);
    for (size_t head = 0; head < heads; head++) {
        if (!push_number(&columns->head_row_end, 0)) return false;
    }
    if (!vector_reserve(&columns->head_rows, rows, sizeof(int32_t))) return false;
    columns->head_rows.count = rows;
    int32_t *ends = columns->head_row_end.items, *sorted = columns->head_rows.items;
    for (size_t row = 0; row < rows; row++) ends[number_at(&columns->head, row)]++;
    int32_t sum = 0;
    for (size_t head = 0; head < heads; head++) { /* counts become starts */
        int32_t count = ends[head];
        ends[head] = sum;
        sum += count;
    }
    for (size_t row = 0; row < rows; row++) sorted[ends[number_at(&columns->head, row)]++] = (int32_t)row; /* and ends */
    return true;
}

int32_t hlo_column_count(void) { return COUNT; }

const char *hlo_column_name(int32_t index) { return index >= 0 && index < COUNT ? COLUMNS[index].name : ""; }

int32_t hlo_column_width(int32_t index) { return index >= 0 && index < COUNT ? (int32_t)COLUMNS[index].width : 0; }

int32_t hlo_lengths(Reader *reader, int64_t *counts) {
    if (reader->is_open) drop_open(reader);
    if (!sort_rows(reader)) return NO_MEMORY;
    for (size_t index = 0; index < COUNT; index++) counts[index] = (int64_t)vector_of(reader, index)->count;
    return READ;
}

/* Add to each number of a column. */
static void shift(Vector *vector, int32_t distance) {
    int32_t *numbers = vector->items;
    for (size_t index = 0; index < vector->count; index++) numbers[index] += distance;
}

int32_t hlo_move(Reader *reader, int64_t distance) {
    if (distance < 0 || distance > MAX_TEXT) return REFUSED;
    Columns *columns = &reader->columns;
    Vector *offsets[] = {
        &columns->name_start, &columns->name_end, &columns->tail_start, &columns->attributes, &columns->line_end,
        &columns->first_line_start, &columns->first_line_end, &columns->computation_end,
        &reader->heads.starts, &reader->names.starts, &reader->metadata.starts,
    };
    for (size_t index = 0; index < sizeof offsets / sizeof *offsets; index++) shift(offsets[index], (int32_t)distance);
    return READ;
}

void hlo_take(Reader *reader, void *const *destinations) {
    for (size_t index = 0; index < COUNT; index++) {
        Vector *vector = vector_of(reader, index);
        if (vector->count > 0) memcpy(destinations[index], vector->items, vector->count * COLUMNS[index].width);
        vector_free(vector);
    }
}

int32_t hlo_position(const Reader *reader) { return reader->position; }

int32_t hlo_computations(const Reader *reader) { return (int32_t)reader->columns.computation_name.count; }

