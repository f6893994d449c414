/* Operands: their names in a row, and the rows of these names. */
#include "reader.h"
#include "scan.h"

#include <stdlib.h>
#include <string.h>

/* Read the tuple indices of `name#0#1`, and return the offset after them. */
static int32_t path_end(Text text, int32_t at, int32_t end) {
    while (byte_at(text, at) == '#' && is_of(text, at + 1, DIGIT)) at = skip_class(text, at + 1, end, DIGIT);
    return at;
}

/* Read `[%]name`, with tuple indices or without, before a comma or the end of the operands. */
static int32_t use_end(Text text, int32_t at, int32_t end, Span *name, uint8_t *flags) {
    at += byte_at(text, at) == '%';
    int32_t after = name_end(text, at, end);
    if (after == NONE) return NONE;
    *name = between(at, after);
    at = path_end(text, after, end);
    if (at != after) *flags |= USES_ELEMENTS;
    int next = byte_at(text, at);
    return next == ',' || next == ')' ? at : NONE;
}

/* Read one operand, `[shape] use`, and return the offset after it. */
static int32_t operand_end(Text text, int32_t at, int32_t end, Span *name, uint8_t *flags) {
    if (byte_at(text, at) == '/') {
        at = comment_end(text, at, end);
        if (at == NONE) return NONE;
    }
    int32_t after = use_end(text, at, end, name, flags);
    if (after == NONE) {
        at = shape_end(text, at, end);
        if (at == NONE || byte_at(text, at) != ' ') return NONE;
        after = use_end(text, at + 1, end, name, flags);
    }
    bool is_null = name->length == 4 && starts_with(text, name->start, "null");
    return after == NONE || is_null ? NONE : after;
}

int32_t read_operands(Reader *reader, Text text, int32_t at, int32_t end, uint8_t *flags, Result *result) {
    *result = REFUSED;
    if (byte_at(text, at) == ')') return at + 1;
    while (at < end) {
        Span name = {0, 0};
        at = operand_end(text, at, end, &name, flags);
        if (at == NONE || at >= end) return NONE;
        if (!push_number(&reader->used_starts, name.start) || !push_number(&reader->used_lengths, name.length)) {
            *result = NO_MEMORY;
            return NONE;
        }
        if (byte_at(text, at) == ')') return at + 1;
        if (!starts_with(text, at, ", ")) return NONE;
        at += 2;
    }
    return NONE;
}

/* Return free slots for twice as many names, at least. Their number minus 1 is `mask`. */
static Slot *slots_for(Reader *reader, size_t names, size_t *mask) {
    size_t room = 16;
    while (room < 2 * names) room *= 2;
    if (room > reader->names_room) {
        if (room > SIZE_MAX / sizeof(Slot)) return NULL;
        free(reader->names_of_rows);
        reader->names_of_rows = malloc(room * sizeof(Slot));
        reader->names_room = reader->names_of_rows == NULL ? 0 : room;
        if (reader->names_of_rows == NULL) return NULL;
    }
    memset(reader->names_of_rows, 0xFF, room * sizeof(Slot));
    *mask = room - 1;
    return reader->names_of_rows;
}

static Span name_of(const Columns *columns, size_t row) {
    return between(number_at(&columns->name_start, row), number_at(&columns->name_end, row));
}

/* Return the slot of a name: that of its row, or a free one. NULL for an extent outside the text. */
static Slot *slot_of(const Reader *reader, Text text, Span name, Slot *slots, size_t mask, uint32_t *hash) {
    const uint8_t *bytes = bytes_of(text, name);
    if (bytes == NULL) return NULL;
    *hash = (uint32_t)hash_of(bytes, (size_t)name.length, reader->seed);
    size_t at = *hash & mask;
    for (; slots[at].number != NONE; at = (at + 1) & mask) {
        Span known = name_of(&reader->columns, (size_t)slots[at].number);
        if (slots[at].hash == *hash && same_bytes(text, known, name)) break;
    }
    return &slots[at];
}

Result resolve_operands(Reader *reader, Text text, size_t first_row) {
    Columns *columns = &reader->columns;
    size_t rows = columns->head.count, mask = 0;
    Slot *slots = slots_for(reader, rows - first_row, &mask);
    if (slots == NULL) return NO_MEMORY;
    uint32_t hash = 0;
    for (size_t row = first_row; row < rows; row++) {
        Slot *slot = slot_of(reader, text, name_of(columns, row), slots, mask, &hash);
        if (slot == NULL || slot->number != NONE) return REFUSED; /* a name has one row */
        *slot = (Slot){hash, (int32_t)row};
    }
    uint8_t *flags = columns->row_flags.items;
    for (size_t use = 0; use < reader->used_starts.count; use++) {
        Span name = {number_at(&reader->used_starts, use), number_at(&reader->used_lengths, use)};
        Slot *slot = slot_of(reader, text, name, slots, mask, &hash);
        if (slot == NULL || slot->number == NONE) return REFUSED;
        flags[slot->number] |= IS_USED;
        if (!push_number(&columns->operands, slot->number)) return NO_MEMORY;
    }
    return READ;
}
