/* The values of rows that make no call. */
#include "values.h"

int64_t first_row(const Values *values, int32_t computation) {
    bool is_known = computation >= 0 && computation < values->in.computation_count;
    return is_known ? values->in.first_rows[computation] : 0;
}

int64_t row_count(const Values *values, int32_t computation) {
    bool is_known = computation >= 0 && computation < values->in.computation_count;
    int64_t count = is_known ? values->in.first_rows[computation + 1] - first_row(values, computation) : 0;
    return count > 0 && first_row(values, computation) >= 0 && first_row(values, computation) + count <= values->in.rows.count
               ? count
               : 0;
}

/* Return the row of a call, counted in its computation, as one of the columns. */
static int32_t own_row(const Values *values, const OpenCall *open, int64_t row) {
    return (int32_t)(row - first_row(values, call_at(values, open->call)->computation));
}

int32_t head_at(const Values *values, int64_t row) {
    int32_t head = values->in.heads[row];
    return head >= 0 && head < values->in.head_count ? head : 0;
}

int head_kind(const Values *values, int64_t row) { return values->in.kinds[head_at(values, row)]; }

int32_t form_at(const Values *values, int64_t row) {
    int32_t form = values->in.forms[row];
    return form >= 0 && form < values->in.form_count ? form : 0;
}

int64_t operand_count(const Values *values, int64_t row) {
    Places places = operand_places(&values->in.rows, row);
    return places.end - places.start;
}

int64_t operand_row(const Values *values, const OpenCall *open, int64_t row, int64_t number) {
    Places places = operand_places(&values->in.rows, row);
    if (number < 0 || number >= places.end - places.start) return NONE;
    int32_t computation = call_at(values, open->call)->computation;
    int64_t operand = operand_at(&values->in.rows, places.start + number), first = first_row(values, computation);
    return operand >= first && operand < first + row_count(values, computation) ? operand : NONE;
}

int32_t operand_value(const Values *values, const OpenCall *open, int64_t row, int64_t number) {
    int64_t operand = operand_row(values, open, row, number);
    if (operand == NONE) return NO_VALUE;
    const Call *call = call_at(values, open->call);
    size_t place = (size_t)(call->values + operand - first_row(values, call->computation));
    return place < values->values.count ? ((const int32_t *)values->values.items)[place] : NO_VALUE;
}

void add_operand(Values *values, const OpenCall *open, int64_t row, int64_t number) {
    int64_t operand = operand_row(values, open, row, number);
    if (operand != NONE) {
        add_whole(values, operand_value(values, open, row, number), open->call, own_row(values, open, operand));
    }
}

void add_operands(Values *values, const OpenCall *open, int64_t row) {
    int64_t count = operand_count(values, row);
    for (int64_t number = 0; number < count; number++) add_operand(values, open, row, number);
}

int32_t node_of(Values *values, const OpenCall *open, int64_t row, size_t mark, int kind) {
    return new_node(values, open->call, own_row(values, open, row), mark, kind);
}

int32_t make_of_kind(Values *values, const OpenCall *open, int64_t row, int kind) {
    size_t mark = values->made.count;
    add_operands(values, open, row);
    return node_of(values, open, row, mark, kind);
}

int32_t make_node(Values *values, const OpenCall *open, int64_t row) {
    return make_of_kind(values, open, row, head_kind(values, row));
}

int32_t tuple_of_operands(Values *values, const OpenCall *open, int64_t row) {
    int64_t count = operand_count(values, row);
    int32_t tuple = new_tuple(values, (size_t)count);
    for (int64_t number = 0; number < count; number++) {
        set_item(values, tuple, (int32_t)number, operand_value(values, open, row, number));
    }
    return tuple;
}

bool is_sliced(const Values *values, int32_t value) {
    const Composite *own = composite_of(values, value);
    return own != NULL && own->starts != NONE;
}

/* -- inputs and elements ------------------------------------------------------------------------------------------------ */

/* Return the number in the parentheses of an input; NONE if there is none. */
static int32_t input_number(const Values *values, int64_t row) {
    Text text = {values->in.text, (int32_t)values->in.text_size};
    int32_t at = values->in.tails[row], number = 0, digits = 0;
    while (is_of(text, at, DIGIT) && digits < 9) {
        number = number * 10 + (byte_at(text, at) - '0');
        at++;
        digits++;
    }
    return digits > 0 && byte_at(text, at) == ')' ? number : NONE;
}

/* Make the nodes of an input of the step: one for each array of its shape, which `inputs` describes from `place` on. */
static int32_t new_inputs(Values *values, const OpenCall *open, int64_t row) {
    Places places = operand_places(&values->in.inputs, head_at(values, row));
    int kind = (int)values->in.input_kind;
    int32_t root = NO_VALUE;
    size_t mark = values->waiting.count; /* tuples, each with the place of the next element */
    for (int64_t place = places.start; place < places.end && values->result == READ; place++) {
        int32_t count = values->in.inputs.operands[place];
        int32_t value = count < 0 ? node_of(values, open, row, values->made.count, kind) : new_tuple(values, (size_t)count);
        int32_t *stack = values->waiting.items;
        size_t depth = values->waiting.count;
        if (depth > mark) set_item(values, stack[depth - 2], stack[depth - 1]++, value);
        else root = value;
        if (count >= 0 && (!push_number(&values->waiting, value) || !push_number(&values->waiting, 0))) fail(values, NO_MEMORY);
        for (depth = values->waiting.count; depth > mark; depth -= 2) { /* leave tuples that are full */
            stack = values->waiting.items;
            const Composite *tuple = composite_of(values, stack[depth - 2]);
            if (tuple == NULL || stack[depth - 1] < tuple->count) break;
        }
        vector_cut(&values->waiting, depth);
    }
    vector_cut(&values->waiting, mark);
    return root;
}

static int32_t input(Values *values, const OpenCall *open, int64_t row) {
    if (open->arguments == NO_VALUE) return new_inputs(values, open, row);
    int32_t number = input_number(values, row);
    if (number == NONE) fail(values, REFUSED);
    return item_of(values, open->arguments, number);
}

static int32_t element(Values *values, const OpenCall *open, int64_t row) {
    int32_t whole = operand_value(values, open, row, 0);
    if (composite_of(values, whole) == NULL || is_sliced(values, whole)) return whole;
    int64_t number = values->in.lows[form_at(values, row)];
    return number >= 0 && number < INT32_MAX ? item_of(values, whole, (int32_t)number) : NO_VALUE;
}

static int32_t passed(Values *values, const OpenCall *open, int64_t row) {
    return operand_count(values, row) == 1 ? operand_value(values, open, row, 0) : tuple_of_operands(values, open, row);
}

static int32_t reshaped(Values *values, const OpenCall *open, int64_t row) {
    int32_t value = operand_value(values, open, row, 0);
    if (!is_sliced(values, value)) return value;
    if (values->in.dimensions[head_at(values, row)] == composite_of(values, value)->stop) return value;
    if (composite_of(values, value)->reshaped == NONE) {
        size_t mark = values->made.count;
        add_nodes(values, value);
        int32_t node = node_of(values, open, row, mark, (int)values->in.passing_kind);
        composite_of(values, value)->reshaped = node;
    }
    return composite_of(values, value)->reshaped;
}

/* -- operations --------------------------------------------------------------------------------------------------------- */

static int32_t each_made(Values *values, const OpenCall *open, int64_t row) {
    int64_t count = operand_count(values, row);
    if (count == 1) return in_parts(values, open, row);
    if (count == 0) return make_node(values, open, row);
    int32_t value = new_tuple(values, (size_t)count);
    for (int64_t number = 0; number < count && values->result == READ; number++) {
        size_t mark = values->made.count;
        add_operand(values, open, row, number);
        set_item(values, value, (int32_t)number, node_of(values, open, row, mark, head_kind(values, row)));
    }
    return value;
}

static int32_t scaled(Values *values, const OpenCall *open, int64_t row) {
    int64_t count = operand_count(values, row);
    for (int64_t number = 0; number < count; number++) {
        int64_t operand = operand_row(values, open, row, number);
        if (operand != NONE && values->in.scalars[head_at(values, operand)]) return make_of_kind(values, open, row, 0);
    }
    return make_node(values, open, row);
}

static int32_t by_form(Values *values, const OpenCall *open, int64_t row) {
    int32_t form = form_at(values, row);
    if (values->in.lows[form] > 0 && operand_count(values, row) > 0) return passed(values, open, row);
    return make_of_kind(values, open, row, (int)(values->in.highs[form] & 0xFF));
}

int32_t value_of_row(Values *values, const OpenCall *open, int64_t row, int action) {
    switch (action) {
        case IS_INPUT: return input(values, open, row);
        case TAKES: return element(values, open, row);
        case PACKS: return tuple_of_operands(values, open, row);
        case PASSES_ALL: return passed(values, open, row);
        case PASSES: return operand_value(values, open, row, 0);
        case RESHAPES: return reshaped(values, open, row);
        case IS_NOTHING: return NO_VALUE;
        case JOINS: return joined(values, open, row);
        case CUTS: return cut(values, open, row);
        case KEEPS_PARTS: return in_parts(values, open, row);
        case MAKES_EACH: return each_made(values, open, row);
        case MAY_SCALE: return scaled(values, open, row);
        case BY_FORM: return by_form(values, open, row);
        default: return make_node(values, open, row);
    }
}
