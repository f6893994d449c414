/* One row: `[ROOT] [%]name = shape opcode(operands), attributes`. */
#include "reader.h"
#include "scan.h"

#include <string.h>

/* Return true if the parentheses of an opcode hold no operands. */
static bool is_literal(const Reader *reader, Text text, Span opcode) {
    for (int32_t index = 0; index < reader->literal_count; index++) {
        const char *word = reader->literals[index].word;
        if (strlen(word) == (size_t)opcode.length && starts_with(text, opcode.start, word)) return true;
    }
    return false;
}

/* Return the number of a head, or NONE without memory. */
static int32_t head_number(Reader *reader, Text text, Span head, Span opcode) {
    int32_t number = intern(&reader->heads, text, head, 0);
    if (number == NONE || (size_t)number < reader->literal.count) return number;
    return push_byte(&reader->literal, is_literal(reader, text, opcode)) ? number : NONE;
}

static Result add_row(Reader *reader, Span name, int32_t head, int32_t tail, int32_t attributes, int32_t end, uint8_t flags) {
    Columns *columns = &reader->columns;
    bool is_stored = push_number(&columns->name_start, name.start) &&
                     push_number(&columns->name_end, name.start + name.length) && push_number(&columns->head, head) &&
                     push_number(&columns->tail_start, tail) &&
                     push_number(&columns->attributes, attributes) && push_number(&columns->line_end, end) &&
                     push_number(&columns->operand_end, (int32_t)(columns->operands.count + reader->used_starts.count)) &&
                     push_byte(&columns->row_flags, flags);
    return is_stored ? READ : NO_MEMORY;
}

Result read_row(Reader *reader, Text text, Span line) {
    int32_t end = line.start + line.length, at = line.start;
    while (at < end && byte_at(text, at) == ' ') at++;
    uint8_t flags = 0;
    if (starts_with(text, at, "ROOT ")) {
        flags = IS_ROOT;
        at += 5;
    }
    at += byte_at(text, at) == '%';
    int32_t name_start = at;
    at = name_end(text, at, end);
    if (at == NONE || !starts_with(text, at, " = ")) return REFUSED;
    Span name = between(name_start, at);
    int32_t shape = at + 3;
    at = shape_end(text, shape, end);
    if (at == NONE || at >= end || byte_at(text, at) != ' ' || !is_of(text, at + 1, LOWER)) return REFUSED;
    int32_t opcode = at + 1;
    at = skip_class(text, opcode, end, OPCODE);
    if (at >= end || byte_at(text, at) != '(') return REFUSED;
    int32_t head = head_number(reader, text, between(shape, at), between(opcode, at));
    if (head == NONE) return NO_MEMORY;
    int32_t tail = at + 1;
    Result result = REFUSED;
    bool holds_literal = ((const uint8_t *)reader->literal.items)[head] != 0;
    int32_t close = holds_literal ? bracket_end(text, at, end) : read_operands(reader, text, tail, end, &flags, &result);
    if (close == NONE) return result;
    result = add_row(reader, name, head, tail, close, end, flags);
    return result == READ ? read_attributes(reader, text, close, end) : result;
}
