/* One computation: its first line, its rows, its last line. It is read whole or not at all. */
#include "reader.h"
#include "scan.h"

/* Read `[ENTRY] [%]name [(parameters) -> shape] {`, which is a whole line. */
static Result read_first_line(Reader *reader, Text text, Span line, Span *name) {
    int32_t at = line.start, end = line.start + line.length;
    reader->flags = 0;
    if (starts_with(text, at, "ENTRY ")) {
        reader->flags = IS_ENTRY;
        at += 6;
    }
    at += byte_at(text, at) == '%';
    int32_t start = at;
    at = name_end(text, at, end);
    if (at == NONE || byte_at(text, at) != ' ') return REFUSED;
    *name = between(start, at);
    at++;
    if (byte_at(text, at) == '(') {
        at = bracket_end(text, at, end);
        if (at == NONE || !starts_with(text, at, " -> ")) return REFUSED;
        at = shape_end(text, at + 4, end);
        if (at == NONE || byte_at(text, at) != ' ') return REFUSED;
        at++;
    }
    return byte_at(text, at) == '{' && at + 1 == end ? READ : REFUSED;
}

/* Read `}`, with a thread or without. A comma on the next line would continue it. */
static Result read_last_line(Text text, Span line, bool is_final) {
    int32_t at = line.start + 1, end = line.start + line.length;
    if (at < end) {
        static const char thread[] = ", execution_thread=\"";
        if (!starts_with(text, at, thread)) return REFUSED;
        if (string_end(text, at + (int32_t)sizeof thread - 2, end) != end) return REFUSED;
    }
    at = end;
    while (byte_at(text, at) == '\n' || byte_at(text, at) == ' ') at++;
    int next = byte_at(text, at);
    if (next == NONE) return is_final ? READ : INCOMPLETE;
    return next == ',' || next < ' ' ? REFUSED : READ;
}

/* Store a computation whose rows are read. */
static Result add_computation(Reader *reader, int32_t end) {
    const Open *open = &reader->open;
    size_t first_row = open->first_row;
    int32_t root = open->root;
    Columns *columns = &reader->columns;
    int32_t number = (int32_t)columns->computation_name.count;
    size_t rows = columns->head.count - first_row;
    if (columns->head.count > MAX_TEXT / sizeof(int32_t)) return REFUSED;
    Text heads = {columns->head.items, (int32_t)(columns->head.count * sizeof(int32_t))};
    Span own = {(int32_t)(first_row * sizeof(int32_t)), (int32_t)(rows * sizeof(int32_t))};
    int32_t form = intern(&reader->heads_forms, heads, own, root - (int32_t)first_row);
    bool is_stored = form != NONE && push_number(&columns->computation_name, open->name) &&
                     push_number(&columns->computation_line, reader->start_line) &&
                     push_number(&columns->first_row, (int32_t)first_row) && push_number(&columns->root, root) &&
                     push_number(&columns->first_line_start, open->first_line.start) &&
                     push_number(&columns->first_line_end, open->first_line.start + open->first_line.length) &&
                     push_number(&columns->computation_end, end) && push_number(&columns->heads_form, form) &&
                     push_byte(&columns->computation_flags, (uint8_t)reader->flags);
    if (!is_stored) return NO_MEMORY;
    ((int32_t *)columns->defined.items)[open->name] = number;
    return READ;
}

/* Intern the name of a computation. Refuse one that the text defined before. */
static Result name_computation(Reader *reader, Text text, Span name, int32_t *number) {
    Vector *defined = &reader->columns.defined;
    *number = intern(&reader->names, text, name, 0);
    if (*number == NONE) return NO_MEMORY;
    if ((size_t)*number == defined->count && !push_number(defined, NONE)) return NO_MEMORY;
    return number_at(defined, (size_t)*number) == NONE ? READ : REFUSED;
}

/* Read the first line of the computation at the reader's start. */
static Result open_computation(Reader *reader, Text text) {
    int32_t end = line_end(text, reader->start);
    if (end == NONE) return INCOMPLETE;
    Open *open = &reader->open;
    *open = (Open){.first_line = between(reader->start, end), .first_row = reader->columns.head.count, .root = NONE};
    open->next = end + 1;
    open->lines = 1;
    vector_cut(&reader->used_starts, 0);
    vector_cut(&reader->used_lengths, 0);
    Span name;
    Result result = read_first_line(reader, text, open->first_line, &name);
    if (result == READ) result = name_computation(reader, text, name, &open->name);
    reader->is_open = result == READ;
    return result;
}

/* Read the rows from the next line on, and the last line. */
static Result read_rows(Reader *reader, Text text, bool is_final) {
    Open *open = &reader->open;
    for (;;) {
        int32_t start = open->next, end = line_end(text, start);
        if (end == NONE) return INCOMPLETE;
        if (byte_at(text, start) == '}') {
            Result result = read_last_line(text, between(start, end), is_final);
            if (result == READ) open->next = end + 1;
            return result;
        }
        size_t row = reader->columns.head.count;
        Result result = read_row(reader, text, between(start, end));
        if (result != READ) return result;
        if (((const uint8_t *)reader->columns.row_flags.items)[row] & IS_ROOT) {
            if (open->root != NONE) return REFUSED;
            open->root = (int32_t)row;
        }
        open->next = end + 1;
        open->lines++;
    }
}

Result read_computation(Reader *reader, Text text, bool is_final) {
    Open *open = &reader->open;
    Result result = reader->is_open ? READ : open_computation(reader, text);
    if (result == READ) result = read_rows(reader, text, is_final);
    if (result != READ) return result;
    if (open->root == NONE) return REFUSED;
    result = resolve_operands(reader, text, open->first_row);
    if (result == READ) result = classify(reader, text, open->first_row, open->root);
    if (result == READ) result = add_computation(reader, open->next);
    if (result != READ) return result;
    reader->is_open = false;
    reader->position = open->next;
    reader->line = reader->start_line + open->lines + 1;
    return READ;
}
