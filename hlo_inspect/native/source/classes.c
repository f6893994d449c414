/* Classes: numbers that rows, and computations, share if their texts differ in names and metadata only.

   Each has a key of numbers and bytes. Those of distinct ones are stored one after the other, and interned. */
#include "reader.h"

static bool add_number(Reader *reader, int32_t number) {
    return push_bytes(&reader->class_bytes, (const uint8_t *)&number, sizeof number);
}

/* Return the number of the key that starts at an index of the stored bytes and ends with them, or NONE without memory. */
static int32_t class_of_key(Reader *reader, size_t start) {
    Vector *bytes = &reader->class_bytes;
    if (bytes->count > MAX_TEXT) return NONE;
    Text buffer = {bytes->items, (int32_t)bytes->count};
    int32_t known = interned_count(&reader->classes);
    int32_t number = intern(&reader->classes, buffer, between((int32_t)start, buffer.size), 0);
    if (number != known) vector_cut(bytes, start);
    return number;
}

static size_t end_before(const Vector *ends, size_t row) { return row > 0 ? (size_t)number_at(ends, row - 1) : 0; }

/* Add the class of a called computation, or its name if no earlier line defines it. */
static bool add_callee(Reader *reader, int32_t name) {
    const Columns *columns = &reader->columns;
    int32_t computation = number_at(&columns->defined, (size_t)name);
    return add_number(reader, computation == NONE) &&
           add_number(reader, computation == NONE ? name : number_at(&columns->computation_class, (size_t)computation));
}

/* Store the class of a row. One that uses elements of tuples has its own. */
static bool classify_row(Reader *reader, size_t row) {
    Columns *columns = &reader->columns;
    size_t start = reader->class_bytes.count;
    size_t operand = end_before(&columns->operand_end, row), operands = (size_t)number_at(&columns->operand_end, row);
    size_t call = end_before(&columns->call_end, row), calls = (size_t)number_at(&columns->call_end, row);
    bool is_single = (((const uint8_t *)columns->row_flags.items)[row] & USES_ELEMENTS) != 0;
    bool is_added = add_number(reader, number_at(&columns->head, row)) &&
                    add_number(reader, number_at(&columns->attribute_form, row)) &&
                    add_number(reader, is_single ? (int32_t)row : NONE) && add_number(reader, (int32_t)(operands - operand));
    for (; is_added && operand < operands; operand++) {
        int32_t used = number_at(&columns->operands, operand);
        is_added = add_number(reader, number_at(&columns->head, (size_t)used));
    }
    for (; is_added && call < calls; call++) is_added = add_callee(reader, number_at(&columns->callee, call));
    int32_t number = is_added ? class_of_key(reader, start) : NONE;
    return number != NONE && push_number(&columns->row_class, number);
}

/* Add the class of a row of a computation, its operands, and what its parentheses hold instead of operands. */
static bool add_row(Reader *reader, Text text, size_t row, int32_t first_row) {
    const Columns *columns = &reader->columns;
    bool is_added = add_number(reader, number_at(&columns->row_class, row));
    size_t operand = end_before(&columns->operand_end, row), operands = (size_t)number_at(&columns->operand_end, row);
    for (; is_added && operand < operands; operand++) {
        is_added = add_number(reader, number_at(&columns->operands, operand) - first_row);
    }
    if (!is_added || !((const uint8_t *)reader->literal.items)[number_at(&columns->head, row)]) return is_added;
    Span literal = between(number_at(&columns->tail_start, row), number_at(&columns->attributes, row));
    const uint8_t *bytes = bytes_of(text, literal);
    return bytes != NULL && add_number(reader, literal.length) &&
           push_bytes(&reader->class_bytes, bytes, (size_t)literal.length);
}

Result classify(Reader *reader, Text text, size_t first_row, int32_t root) {
    Columns *columns = &reader->columns;
    size_t rows = columns->head.count;
    for (size_t row = first_row; row < rows; row++) {
        if (!classify_row(reader, row)) return NO_MEMORY;
    }
    if (reader->flags & IS_ENTRY) return push_number(&columns->computation_class, NONE) ? READ : NO_MEMORY;
    size_t start = reader->class_bytes.count;
    bool is_added = add_number(reader, NONE) && add_number(reader, root - (int32_t)first_row);
    for (size_t row = first_row; is_added && row < rows; row++) is_added = add_row(reader, text, row, (int32_t)first_row);
    int32_t number = is_added ? class_of_key(reader, start) : NONE;
    return number != NONE && push_number(&columns->computation_class, number) ? READ : NO_MEMORY;
}
