/* Attributes of a row: called computations, metadata, and the form of the others, in which names are left out. */
#include "reader.h"
#include "scan.h"

#include <string.h>

static int32_t role_of(const Reader *reader, Text text, Span key) {
    for (int32_t index = 0; index < reader->role_count; index++) {
        const Word *role = &reader->roles[index];
        if (strlen(role->word) == (size_t)key.length && starts_with(text, key.start, role->word)) return role->role;
    }
    return KEPT;
}

/* Add a called computation. One that no earlier line defines marks its caller. */
static Result add_callee(Reader *reader, Text text, Span name, int32_t role) {
    Columns *columns = &reader->columns;
    int32_t number = intern(&reader->names, text, name, 0);
    if (number == NONE) return NO_MEMORY;
    if ((size_t)number == columns->defined.count && !push_number(&columns->defined, NONE)) return NO_MEMORY;
    if (number_at(&columns->defined, (size_t)number) == NONE) reader->flags |= CALLS_AHEAD;
    if (!push_number(&columns->callee, number) || !push_byte(&columns->role, (uint8_t)role)) return NO_MEMORY;
    return READ;
}

/* Read `name` or `{name, name}`, marks included. Anything else, as a computation in place, is refused. */
static Result read_callees(Reader *reader, Text text, Span value, int32_t role) {
    int32_t at = value.start, end = value.start + value.length;
    bool is_list = byte_at(text, at) == '{';
    at += is_list;
    while (at < end) {
        at += byte_at(text, at) == '%';
        int32_t after = name_end(text, at, end);
        if (after == NONE) return REFUSED;
        Result result = add_callee(reader, text, between(at, after), role);
        if (result != READ) return result;
        if (after == end) return is_list ? REFUSED : READ;
        if (is_list && byte_at(text, after) == '}') return after + 1 == end ? READ : REFUSED;
        if (!is_list || !starts_with(text, after, ", ")) return REFUSED;
        at = after + 2;
    }
    return REFUSED;
}

static Result add_to_form(Reader *reader, Text text, int32_t start, int32_t end) {
    const uint8_t *bytes = bytes_of(text, between(start, end));
    if (bytes == NULL) return REFUSED;
    return push_bytes(&reader->form, bytes, (size_t)(end - start)) ? READ : NO_MEMORY;
}

/* Return the number of the current form, which is stored once. */
static int32_t form_number(Reader *reader) {
    Vector *bytes = &reader->form_bytes;
    size_t before = bytes->count;
    if (before > MAX_TEXT - reader->form.count) return NONE;
    if (!vector_reserve(bytes, reader->form.count + 1, 1)) return NONE; /* a buffer for the empty form, too */
    if (!push_bytes(bytes, reader->form.items, reader->form.count)) return NONE;
    Text buffer = {bytes->items, (int32_t)bytes->count};
    int32_t known = interned_count(&reader->attribute_forms);
    int32_t number = intern(&reader->attribute_forms, buffer, between((int32_t)before, buffer.size), 0);
    if (number != known) vector_cut(bytes, before);
    return number;
}

/* Read `, key=value`, and return the offset after it in `at`. */
static Result read_attribute(Reader *reader, Text text, int32_t *at, int32_t end, int32_t *metadata) {
    int32_t start = *at, key = *at + 2;
    if (!starts_with(text, start, ", ")) return REFUSED;
    int32_t value = name_end(text, key, end);
    if (value == NONE || byte_at(text, value) != '=') return REFUSED;
    int32_t role = role_of(reader, text, between(key, value));
    value++;
    int32_t after = value_end(text, value, end);
    if (after == NONE) return REFUSED;
    *at = after;
    if (role == KEPT) return add_to_form(reader, text, start, after);
    if (role == METADATA) {
        if (*metadata != NONE) return REFUSED;
        *metadata = intern(&reader->metadata, text, between(value, after), 0);
        return *metadata == NONE ? NO_MEMORY : READ;
    }
    Result result = add_to_form(reader, text, start, value);
    return result == READ && role >= CALLEE ? read_callees(reader, text, between(value, after), role - CALLEE) : result;
}

Result read_attributes(Reader *reader, Text text, int32_t at, int32_t end) {
    int32_t metadata = NONE;
    vector_cut(&reader->form, 0);
    while (at < end) {
        Result result = read_attribute(reader, text, &at, end, &metadata);
        if (result != READ) return result;
    }
    Columns *columns = &reader->columns;
    int32_t form = form_number(reader);
    bool is_stored = form != NONE && push_number(&columns->attribute_form, form) && push_number(&columns->metadata, metadata) &&
                     push_number(&columns->call_end, (int32_t)columns->callee.count);
    return is_stored ? READ : NO_MEMORY;
}
