/* What callers use: a reader takes the text of a module, in pieces that grow, and fills columns. */
#include "columns.h"
#include "library.h"

#include <stdlib.h>
#include <string.h>

/* Copy words separated by commas. Their roles are all `role`, or count up from it. */
static bool take_words(const char *list, int32_t role, bool is_counted, Word *words, int32_t *count) {
    while (*list != '\0') {
        size_t length = strcspn(list, ",");
        if (*count == MAX_ROLES || length >= MAX_WORD) return false;
        memcpy(words[*count].word, list, length);
        words[*count].word[length] = '\0';
        words[(*count)++].role = role;
        role += is_counted;
        list += length;
        if (*list == ',') list++;
    }
    return true;
}

int32_t hlo_version(void) { return VERSION; }

Reader *hlo_reader_begin(uint64_t seed, const char *literals, const char *metadata, const char *left_out, const char *callees) {
    Reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL) return NULL;
    reader->seed = seed;
    bool is_ready = interner_begin(&reader->heads, seed) && interner_begin(&reader->names, seed) &&
                    interner_begin(&reader->metadata, seed) && interner_begin(&reader->attribute_forms, seed) &&
                    interner_begin(&reader->heads_forms, seed) && interner_begin(&reader->classes, seed) &&
                    take_words(literals, 0, false, reader->literals, &reader->literal_count) &&
                    take_words(metadata, METADATA, false, reader->roles, &reader->role_count) &&
                    take_words(left_out, LEFT_OUT, false, reader->roles, &reader->role_count) &&
                    take_words(callees, CALLEE, true, reader->roles, &reader->role_count);
    if (is_ready) return reader;
    hlo_reader_end(reader);
    return NULL;
}

void hlo_reader_end(Reader *reader) {
    if (reader == NULL) return;
    free_columns(reader);
    Interner *interners[] = {&reader->heads, &reader->names, &reader->metadata, &reader->attribute_forms,
                             &reader->heads_forms, &reader->classes};
    for (size_t index = 0; index < sizeof interners / sizeof *interners; index++) interner_end(interners[index]);
    Vector *vectors[] = {&reader->form_bytes, &reader->class_bytes, &reader->form, &reader->literal,
                         &reader->used_starts, &reader->used_lengths};
    for (size_t index = 0; index < sizeof vectors / sizeof *vectors; index++) vector_free(vectors[index]);
    free(reader->names_of_rows);
    free(reader);
}

Result hlo_read(Reader *reader, const uint8_t *bytes, int64_t size, int is_final) {
    if (size < 0 || size > MAX_TEXT) return REFUSED;
    Text text = {bytes, (int32_t)size};
    for (;;) {
        if (!reader->is_open) {
            reader->start = reader->position;
            while (byte_at(text, reader->start) == '\n') reader->start++;
            reader->start_line = reader->line + reader->start - reader->position;
            if (byte_at(text, reader->start) == NONE) return INCOMPLETE;
            save_lengths(reader);
        }
        Result result = read_computation(reader, text, is_final != 0);
        if (result == INCOMPLETE && !is_final) return result;
        if (result != READ) {
            drop_open(reader);
            return result;
        }
        size_t last = reader->columns.computation_flags.count - 1;
        if (((const uint8_t *)reader->columns.computation_flags.items)[last] & IS_ENTRY) return ENTRY_READ;
    }
}
