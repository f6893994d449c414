/* Reads files as Python would, for sanitizers: no Python is part of it.

       driver FILE...

   Each file is read from every line that may start a computation after the place before. The text is given in pieces that
   grow, each in a buffer of its own size, so that a read behind the end is seen. It prints rows and computations, and ends
   with 1 if a column does not fit the others. */
#include "columns.h"
#include "library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_PIECE = 200 };

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
    bool is_valid = hlo_lengths(reader, (int64_t[MAX_COLUMNS]){0}) == READ && are_valid(reader, size);
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
