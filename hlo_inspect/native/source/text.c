/* Classes of bytes, and searches in the text. */
#include "text.h"

#include <string.h>

enum {
    UPPER_CLASS = LETTER | NAME | PLAIN | IN_STRING,
    LOWER_CLASS = LETTER | NAME | OPCODE | LOWER | PLAIN | IN_STRING,
    DIGIT_CLASS = NAME | OPCODE | PLAIN | IN_STRING | DIGIT,
    MARK_CLASS = PLAIN | IN_STRING
};

#define FOUR(first, class) [first] = class, [(first) + 1] = class, [(first) + 2] = class, [(first) + 3] = class

const uint8_t CLASSES[256] = {
    /* letters and digits */
    FOUR('A', UPPER_CLASS), FOUR('E', UPPER_CLASS), FOUR('I', UPPER_CLASS), FOUR('M', UPPER_CLASS), FOUR('Q', UPPER_CLASS),
    FOUR('U', UPPER_CLASS), ['Y'] = UPPER_CLASS, ['Z'] = UPPER_CLASS,
    FOUR('a', LOWER_CLASS), FOUR('e', LOWER_CLASS), FOUR('i', LOWER_CLASS), FOUR('m', LOWER_CLASS), FOUR('q', LOWER_CLASS),
    FOUR('u', LOWER_CLASS), ['y'] = LOWER_CLASS, ['z'] = LOWER_CLASS,
    FOUR('0', DIGIT_CLASS), FOUR('4', DIGIT_CLASS), ['8'] = DIGIT_CLASS, ['9'] = DIGIT_CLASS,
    /* the other bytes of names */
    ['_'] = LETTER | NAME | MARK_CLASS, ['.'] = NAME | MARK_CLASS, ['-'] = NAME | OPCODE | MARK_CLASS,
    /* marks */
    ['!'] = MARK_CLASS, ['#'] = MARK_CLASS, ['$'] = MARK_CLASS, ['%'] = MARK_CLASS, ['&'] = MARK_CLASS, ['*'] = MARK_CLASS,
    ['+'] = MARK_CLASS, [':'] = MARK_CLASS, [';'] = MARK_CLASS, ['<'] = MARK_CLASS, ['='] = MARK_CLASS, ['>'] = MARK_CLASS,
    ['?'] = MARK_CLASS, ['@'] = MARK_CLASS, ['^'] = MARK_CLASS, ['`'] = MARK_CLASS, ['|'] = MARK_CLASS, ['~'] = MARK_CLASS,
    /* what has a meaning outside of strings */
    [' '] = IN_STRING, [','] = IN_STRING, ['/'] = IN_STRING, ['\''] = IN_STRING, ['('] = IN_STRING, [')'] = IN_STRING,
    ['['] = IN_STRING, [']'] = IN_STRING, ['{'] = IN_STRING, ['}'] = IN_STRING,
};

int32_t skip_class(Text text, int32_t at, int32_t end, int class) {
    while (at < end && is_of(text, at, class)) at++;
    return at;
}

int32_t line_end(Text text, int32_t at) {
    Span rest = between(at, text.size);
    const uint8_t *bytes = bytes_of(text, rest);
    if (bytes == NULL || rest.length == 0) return NONE;
    const uint8_t *found = memchr(bytes, '\n', (size_t)rest.length);
    return found == NULL ? NONE : at + (int32_t)(found - bytes);
}

bool starts_with(Text text, int32_t at, const char *word) {
    size_t length = strlen(word);
    if (length > MAX_TEXT) return false;
    const uint8_t *bytes = bytes_of(text, (Span){at, (int32_t)length});
    return bytes != NULL && memcmp(bytes, word, length) == 0;
}

bool same_bytes(Text text, Span left, Span right) {
    const uint8_t *first = bytes_of(text, left), *second = bytes_of(text, right);
    return first != NULL && second != NULL && left.length == right.length && memcmp(first, second, (size_t)left.length) == 0;
}
