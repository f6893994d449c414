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
static Result add_computation(Reader *reader, Span first_line, int32_t name, size_t first_row, int32_t root, int32_t end) {
    Columns *columns = &reader->columns;
    int32_t number = (int32_t)columns->computation_name.count;
    size_t rows = columns->head.count - first_row;
    if (columns->head.count > MAX_TEXT / sizeof(int32_t)) return REFUSED;
    Text heads = {columns->head.items, (int32_t)(columns->head.count * sizeof(int32_t))};
    Span own = {(int32_t)(first_row * sizeof(int32_t)), (int32_t)(rows * sizeof(int32_t))};
    int32_t form = intern(&reader->heads_forms, heads, own, root - (int32_t)first_row);
    bool is_stored = form != NONE && push_number(&columns->computation_name, name) &&
                     push_number(&columns->computation_line, reader->start_line) &&
                     push_number(&columns->first_row, (int32_t)first_row) && push_number(&columns->root, root) &&
                     push_number(&columns->first_line_start, first_line.start) &&
                     push_number(&columns->first_line_end, first_line.start + first_line.length) &&
                     push_number(&columns->computation_end, end) && push_number(&columns->heads_form, form) &&
                     push_byte(&columns->computation_flags, (uint8_t)reader->flags);
    if (!is_stored) return NO_MEMORY;
    ((int32_t *)columns->defined.items)[name] = number;
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

Result read_computation(Reader *reader, Text text, bool is_final) {
    size_t first_row = reader->columns.head.count;
    int32_t end = line_end(text, reader->start), name = NONE, root = NONE, lines = 1;
    if (end == NONE) return INCOMPLETE;
    Span first_line = between(reader->start, end), printed;
    Result result = read_first_line(reader, text, first_line, &printed);
    if (result == READ) result = name_computation(reader, text, printed, &name);
    vector_cut(&reader->used_starts, 0);
    vector_cut(&reader->used_lengths, 0);
    while (result == READ) {
        int32_t start = end + 1;
        end = line_end(text, start);
        if (end == NONE) return INCOMPLETE;
        lines++;
        if (byte_at(text, start) == '}') {
            result = read_last_line(text, between(start, end), is_final);
            break;
        }
        size_t row = reader->columns.head.count;
        result = read_row(reader, text, between(start, end));
        if (result == READ && (((const uint8_t *)reader->columns.row_flags.items)[row] & IS_ROOT)) {
            if (root != NONE) return REFUSED;
            root = (int32_t)row;
        }
    }
    if (result != READ) return result;
    if (root == NONE) return REFUSED;
    result = resolve_operands(reader, text, first_row);
    if (result == READ) result = add_computation(reader, first_line, name, first_row, root, end + 1);
    if (result != READ) return result;
    reader->position = end + 1;
    reader->line = reader->start_line + lines;
    return READ;
}
