/* Reads files as Python would, for sanitizers: no Python is part of it.

       driver FILE...

   Each file is read from every line that may start a computation after the place before. The text is given in pieces that
   grow, each in a buffer of its own size, so that a read behind the end is seen. The operands and values of the rows, and the
   bytes of the file, are graphs too. It prints rows and computations, and ends with 1 if a column does not fit the others. */
#include "columns.h"
#include "flow.h"
#include "graph.h"
#include "library.h"
#include "marks.h"
#include "order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_PIECE = 200, MAX_GRAPH = 2000 };

static long rows_read, computations_read;

static int32_t number(const Vector *vector, size_t index) { return number_at(vector, index); }

/* Return true if each number of a column is at least `least` and less than `limit`. */
static bool fits(const Vector *vector, int32_t least, size_t limit) {
    for (size_t index = 0; index < vector->count; index++) {
        int32_t item = number(vector, index);
        if (item < least || (item >= 0 && (size_t)item >= limit)) return false;
    }
    return true;
}

static bool are_valid(Reader *reader, size_t size) {
    Columns *columns = &reader->columns;
    size_t rows = columns->head.count, computations = columns->computation_name.count;
    for (size_t row = 0; row < rows; row++) {
        int32_t tail = number(&columns->tail_start, row), attributes = number(&columns->attributes, row);
        if (tail > attributes || attributes > number(&columns->line_end, row)) return false;
    }
    return fits(&columns->operands, 0, rows) && fits(&columns->head, 0, (size_t)interned_count(&reader->heads)) &&
           fits(&columns->line_end, 0, size + 1) && fits(&columns->name_start, 0, size) && fits(&columns->root, 0, rows) &&
           fits(&columns->callee, 0, (size_t)interned_count(&reader->names)) && fits(&columns->defined, NONE, computations) &&
           fits(&columns->operand_end, 0, columns->operands.count + 1) && fits(&columns->head_rows, 0, rows) &&
           fits(&columns->call_end, 0, columns->callee.count + 1) && columns->row_flags.count == rows &&
           columns->operand_end.count == rows && columns->metadata.count == rows && columns->head_rows.count == rows &&
           fits(&columns->row_class, 0, (size_t)interned_count(&reader->classes)) && columns->row_class.count == rows &&
           fits(&columns->computation_class, NONE, (size_t)interned_count(&reader->classes)) &&
           columns->computation_class.count == computations;
}

/* Take the columns as Python does, to buffers of their lengths. */
static bool take_columns(Reader *reader) {
    int64_t counts[MAX_COLUMNS];
    void *buffers[MAX_COLUMNS];
    if (hlo_lengths(reader, counts) != READ) return false;
    for (int32_t index = 0; index < hlo_column_count(); index++) {
        buffers[index] = malloc((size_t)counts[index] * (size_t)hlo_column_width(index) + 1);
        if (buffers[index] == NULL) return false;
    }
    hlo_take(reader, buffers);
    for (int32_t index = 0; index < hlo_column_count(); index++) free(buffers[index]);
    return true;
}

/* Spread bits over edges that are anything, and mark, number and visit their nodes, in buffers of their lengths. */
static bool run_graph(const Edges *edges, const uint8_t *kinds) {
    size_t count = (size_t)edges->count;
    uint64_t *bits = calloc(count + 1, sizeof *bits);
    int32_t *classes = malloc(count * sizeof *classes + 1), *firsts = malloc(count * sizeof *firsts + 1);
    bool is_done = bits != NULL && classes != NULL && firsts != NULL;
    if (is_done) {
        Rule rules[] = {{.kind_has = 1, .takes = 3}, {.has = 1, .operands_lack = 4, .takes = 8, .gives = 16}};
        Spread spread = {UINT64_MAX, UINT64_MAX - 1, rules, 2};
        hlo_spread_on(edges, kinds, bits, &spread);
        hlo_spread_back(edges, kinds, bits, &spread);
        is_done = hlo_mark_leading_to_all(edges, edges, bits, 32) != 0;
        Keys keys = {edges->count, edges->ends, edges->count, bits, kinds, kinds, edges->count / 2};
        int64_t found = hlo_number_classes(&keys, classes, firsts);
        is_done = is_done && found >= 0 && found <= edges->count;
        is_done = is_done && hlo_nodes_with(edges->count, bits, 2, 1, firsts) <= edges->count;
        int64_t first = edges->count / 3;
        is_done = is_done && hlo_visit_rows(edges, first, edges->count, 1, firsts) == edges->count - first;
    }
    free(bits);
    free(classes);
    free(firsts);
    return is_done;
}

/* Run the graph of the operands that were read. */
static bool run_operands(Reader *reader, const uint8_t *bytes) {
    Columns *columns = &reader->columns;
    Edges edges = {(int64_t)columns->operand_end.count, columns->operand_end.items, (int64_t)columns->operands.count,
        columns->operands.items};
    return edges.count < MAX_GRAPH ? run_graph(&edges, bytes) : true; /* a row has more than one byte */
}

/* Take the columns of a graph as Python does, and spread bits over it. */
static bool take_values(const Values *values) {
    int64_t counts[MAX_COLUMNS];
    int32_t widths[MAX_COLUMNS], count = hlo_values_lengths(values, counts, widths);
    void *buffers[MAX_COLUMNS] = {NULL};
    bool is_done = hlo_values_flags(values) >= 0;
    for (int32_t index = 0; index < count; index++) {
        buffers[index] = malloc((size_t)(counts[index] * widths[index]) + 1);
        is_done = is_done && buffers[index] != NULL;
    }
    if (is_done) hlo_values_take(values, buffers);
    if (is_done && hlo_values_result(values) == READ) {
        Edges edges = {counts[0], buffers[0], counts[1], buffers[1]};
        is_done = run_graph(&edges, buffers[2]);
    }
    for (int32_t index = 0; index < count; index++) free(buffers[index]);
    return is_done;
}

/* Read the values of the rows that were read, whose heads do anything: the bytes of the file decide. */
static bool run_values(Reader *reader, const uint8_t *bytes, size_t size) {
    Columns *columns = &reader->columns;
    int64_t heads = interned_count(&reader->heads), forms = interned_count(&reader->attribute_forms);
    int64_t computations = (int64_t)columns->computation_name.count, rows = (int64_t)columns->head.count;
    if (heads == 0 || computations == 0 || (size_t)heads > size || (size_t)forms > size) return true;
    uint8_t *actions = malloc((size_t)heads), *scalars = calloc((size_t)heads, 1);
    uint64_t *called = malloc((size_t)heads * sizeof *called);
    int64_t *dimensions = malloc((size_t)heads * sizeof *dimensions), *lows = malloc((size_t)forms * sizeof *lows + 1);
    int32_t *ends = malloc((size_t)heads * sizeof *ends), *shapes = malloc((size_t)heads * sizeof *shapes);
    bool is_done = actions && scalars && called && dimensions && lows && ends && shapes;
    is_done = is_done && push_number(&columns->first_row, (int32_t)rows); /* as Python adds it */
    for (int64_t head = 0; is_done && head < heads; head++) {
        actions[head] = bytes[head] % (BY_FORM + 3);
        called[head] = bytes[size - 1 - (size_t)head] % 2 == 0 ? UINT64_MAX : bytes[head];
        dimensions[head] = bytes[head] % 5 == 0 ? -1 : bytes[head] % 7;
        ends[head] = (int32_t)head + 1;
        shapes[head] = bytes[head] % 9 - 3;
    }
    for (int64_t form = 0; is_done && form < forms; form++) lows[form] = bytes[form] % 11 - 2;
    if (is_done) {
        ValueInputs inputs = {
            .rows = {rows, columns->operand_end.items, (int64_t)columns->operands.count, columns->operands.items},
            .calls = {rows, columns->call_end.items, (int64_t)columns->callee.count, columns->callee.items},
            .heads = columns->head.items, .forms = columns->attribute_form.items, .tails = columns->tail_start.items,
            .roles = columns->role.items, .head_count = heads, .actions = actions, .kinds = bytes, .scalars = scalars,
            .called = called, .dimensions = dimensions, .inputs = {heads, ends, heads, shapes}, .form_count = forms,
            .lows = lows, .highs = lows, .computation_count = computations, .first_rows = columns->first_row.items,
            .roots = columns->root.items, .name_count = (int64_t)columns->defined.count, .defined = columns->defined.items,
            .text = bytes, .text_size = (int64_t)size, .entry = computations - 1, .most_rows = 4 * rows, .most_calls = 50,
            .most_joined = 3, .passing_kind = 2, .input_kind = 16,
        };
        Values *values = hlo_values_begin(&inputs);
        is_done = values != NULL && hlo_values_result(values) != NO_MEMORY && take_values(values);
        hlo_values_end(values);
        vector_cut(&columns->first_row, (size_t)computations);
    }
    free(actions), free(scalars), free(called), free(dimensions), free(lows), free(ends), free(shapes);
    return is_done;
}

/* Run the start of a file as if it were ends and operands. */
static bool run_bytes(const uint8_t *bytes, size_t size) {
    size_t count = size / 8 < MAX_GRAPH ? size / 8 : MAX_GRAPH;
    int32_t *numbers = malloc(count * 2 * sizeof *numbers + 1);
    if (numbers == NULL) return false;
    for (size_t index = 0; index < 2 * count; index++) { /* small numbers, so that some are nodes */
        memcpy(&numbers[index], bytes + 4 * index, sizeof *numbers);
        if (index % 5 != 0) numbers[index] = (int32_t)((uint32_t)numbers[index] % (count + count / 8 + 1));
    }
    Edges edges = {(int64_t)count, numbers, (int64_t)count, numbers + count};
    bool is_done = run_graph(&edges, bytes);
    free(numbers);
    return is_done;
}

/* Read from an offset, and return the offset after the last computation; -1 if a column is wrong. */
static long read_from(const uint8_t *bytes, size_t size) {
    Reader *reader = hlo_reader_begin(0x5EED, "constant,parameter", "metadata", "channel_id,control-predecessors",
        "calls,to_apply,body,condition,branch_computations,called_computations");
    Result result = INCOMPLETE;
    for (size_t piece = FIRST_PIECE; reader != NULL && result == INCOMPLETE; piece *= 4) {
        size_t length = piece < size ? piece : size;
        uint8_t *copy = malloc(length + (length == 0));
        if (copy == NULL) break;
        memcpy(copy, bytes, length);
        result = hlo_read(reader, copy, (int64_t)length, length == size);
        free(copy);
        if (length == size) break;
    }
    if (reader == NULL) return -1;
    bool is_valid = hlo_lengths(reader, (int64_t[MAX_COLUMNS]){0}) == READ && are_valid(reader, size) &&
                    run_operands(reader, bytes) && run_values(reader, bytes, size);
    rows_read += (long)reader->columns.head.count;
    computations_read += (long)reader->columns.computation_name.count;
    long position = hlo_position(reader);
    is_valid = hlo_move(reader, 1) == READ && take_columns(reader) && is_valid;
    hlo_reader_end(reader);
    return is_valid ? position : -1;
}

static bool may_start(const uint8_t *line, size_t length) {
    return length > 0 && line[length - 1] == '{' && line[0] != ' ';
}

static bool read_file(const uint8_t *bytes, size_t size) {
    size_t at = 0;
    if (!run_bytes(bytes, size)) return false;
    while (at < size) {
        const uint8_t *found = memchr(bytes + at, '\n', size - at);
        size_t end = found == NULL ? size : (size_t)(found - bytes);
        if (may_start(bytes + at, end - at)) {
            long length = read_from(bytes + at, size - at);
            if (length < 0) return false;
            if (length > 0) end = at + (size_t)length - 1;
        }
        at = end + 1;
    }
    return true;
}

static uint8_t *content_of(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    long length = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    uint8_t *bytes = length >= 0 ? malloc((size_t)length + 1) : NULL;
    rewind(file);
    *size = bytes != NULL ? fread(bytes, 1, (size_t)length, file) : 0;
    fclose(file);
    return bytes;
}

int main(int count, char **paths) {
    int status = 0;
    for (int index = 1; index < count; index++) {
        size_t size = 0;
        uint8_t *bytes = content_of(paths[index], &size);
        if (bytes == NULL || !read_file(bytes, size)) {
            fprintf(stderr, "%s: %s\n", paths[index], bytes == NULL ? "cannot be read" : "columns do not fit");
            status = 1;
        }
        free(bytes);
    }
    printf("%ld rows in %ld computations\n", rows_read, computations_read);
    return status;
}
