/* Calls of computations. */
#include "values.h"

/* -- calls -------------------------------------------------------------------------------------------------------------- */

static OpenCall *top_call(const Values *values) {
    return values->stack.count > 0 ? (OpenCall *)values->stack.items + values->stack.count - 1 : NULL;
}

static void set_value(Values *values, const OpenCall *open, int32_t row, int32_t value) {
    size_t place = (size_t)(call_at(values, open->call)->values + row);
    if (place < values->values.count) ((int32_t *)values->values.items)[place] = value;
}

/* Add a call to those of its caller. */
static void link_call(Values *values, int32_t number) {
    Call *call = call_at(values, number), *caller = call_at(values, call->caller);
    if (caller == NULL) return;
    Call *last = call_at(values, caller->last_child);
    if (last == NULL) caller->child = number;
    else last->next = number;
    caller->last_child = number;
}

/* Start a call. Return false if it is undefined, recursive, too deep or exceeds the limit of rows, or without memory. */
static bool enter(Values *values, int32_t computation, int32_t arguments, int32_t caller, int32_t row) {
    if (computation < 0 || computation >= values->in.computation_count) return false;
    if (values->is_open[computation] || values->stack.count >= (size_t)values->in.most_calls) return false;
    int64_t rows = row_count(values, computation);
    if (rows > values->left) {
        values->is_whole = 0;
        return false;
    }
    int32_t number = (int32_t)values->calls.count, start = (int32_t)values->values.count;
    if (!vector_reserve(&values->calls, 1, sizeof(Call)) || !vector_reserve(&values->stack, 1, sizeof(OpenCall)) ||
        !vector_reserve(&values->values, (size_t)rows, sizeof(int32_t))) {
        return fail(values, NO_MEMORY);
    }
    if (values->values.count + (size_t)rows > INT32_MAX / 2) return fail(values, REFUSED);
    values->left -= rows;
    for (int64_t index = 0; index < rows; index++) {
        ((int32_t *)values->values.items)[values->values.count++] = NO_VALUE;
    }
    ((Call *)values->calls.items)[values->calls.count++] =
        (Call){computation, caller, row, node_count(values), 0, start, NONE, NONE, NONE};
    ((OpenCall *)values->stack.items)[values->stack.count++] = (OpenCall){number, 0, arguments, 0, 0};
    values->is_open[computation] = 1;
    link_call(values, number);
    return true;
}

static bool push_result(Values *values, int32_t value) {
    return push_number(&values->results, value) || fail(values, NO_MEMORY);
}

/* End the call on top, and hand its result to its caller. */
static void leave(Values *values) {
    OpenCall open = *top_call(values);
    values->stack.count--;
    Call *call = call_at(values, open.call);
    call->stop = node_count(values);
    values->is_open[call->computation] = 0;
    OpenCall *caller = top_call(values);
    if (caller == NULL) return;
    int64_t root = values->in.roots[call->computation] - first_row(values, call->computation);
    bool has_root = root >= 0 && root < row_count(values, call->computation);
    push_result(values, has_root ? number_at(&values->values, (size_t)(call->values + root)) : NO_VALUE);
    caller->done++;
}

/* -- rows that call ------------------------------------------------------------------------------------------------------ */

/* Return the computation that a row calls as number `index` of those that count; NONE without one. */
static int32_t called(const Values *values, int64_t row, int64_t index) {
    Places places = operand_places(&values->in.calls, row);
    uint64_t counted = values->in.called[head_at(values, row)];
    for (int64_t place = places.start; place < places.end; place++) {
        uint8_t role = values->in.roles[place];
        if (role >= 64 || !(counted >> role & 1) || index-- > 0) continue;
        int64_t name = values->in.calls.operands[place];
        return name >= 0 && name < values->in.name_count ? values->in.defined[name] : NONE;
    }
    return NONE;
}

static int64_t called_count(const Values *values, int64_t row) {
    Places places = operand_places(&values->in.calls, row);
    uint64_t counted = values->in.called[head_at(values, row)];
    int64_t count = 0;
    for (int64_t place = places.start; place < places.end; place++) {
        uint8_t role = values->in.roles[place];
        count += role < 64 && (counted >> role & 1);
    }
    return count;
}

/* Make the state of a loop of its initial value: a node for each element. */
static int32_t new_state(Values *values, const OpenCall *open, int64_t row) {
    int32_t initial = operand_value(values, open, row, 0), kind = (int32_t)values->in.passing_kind;
    size_t mark = values->made.count;
    if (composite_of(values, initial) == NULL || is_sliced(values, initial)) {
        add_nodes(values, initial);
        return node_of(values, open, row, mark, kind);
    }
    int32_t count = composite_of(values, initial)->count, state = new_tuple(values, (size_t)count);
    for (int32_t place = 0; place < count && values->result == READ; place++) {
        add_nodes(values, item_of(values, initial, place));
        set_item(values, state, place, node_of(values, open, row, mark, kind));
    }
    return state;
}

/* Begin a row that may call computations. Return false if it calls none: its value is then known. */
static bool begin_calls(Values *values, OpenCall *open, int64_t row, int action) {
    int64_t count = called_count(values, row);
    if (action == MAKES_EACH && count == 0) {
        set_value(values, open, open->row, value_of_row(values, open, row, action));
        return false;
    }
    bool is_branch = action == BRANCHES;
    if (count == 0 || (is_branch && operand_count(values, row) != count + 1)) {
        set_value(values, open, open->row, make_node(values, open, row));
        return false;
    }
    if (action == LOOPS) set_value(values, open, open->row, new_state(values, open, row));
    open->pending = is_branch && count < INT32_MAX ? (int32_t)count : 1;
    open->done = 0;
    return true;
}

static int32_t argument_of(Values *values, const OpenCall *open, int64_t row, int action) {
    if (action != LOOPS && action != BRANCHES) return tuple_of_operands(values, open, row);
    size_t place = (size_t)(call_at(values, open->call)->values + open->row);
    int32_t own = action == LOOPS ? number_at(&values->values, place) : operand_value(values, open, row, open->done + 1);
    int32_t arguments = new_tuple(values, 1);
    set_item(values, arguments, 0, own);
    return arguments;
}

/* Start the next call of a row. Return false if it cannot be read: one node stands for its result. */
static bool start_call(Values *values, int64_t row, int action) {
    OpenCall open = *top_call(values);
    int32_t arguments = argument_of(values, &open, row, action);
    if (enter(values, called(values, row, open.done), arguments, open.call, open.row)) return true;
    push_result(values, make_of_kind(values, &open, row, 0));
    top_call(values)->done++;
    return false;
}

static void add_late(Values *values, int32_t node, size_t mark) {
    if (node < 0) fail(values, REFUSED);
    for (size_t index = mark; index < values->made.count; index++) {
        if (!push_number(&values->late_nodes, node) ||
            !push_number(&values->late_operands, number_at(&values->made, index))) {
            fail(values, NO_MEMORY);
        }
    }
    vector_cut(&values->made, mark);
}

/* Add the result of a loop's body to the operands of the loop's state. */
static void close_loop(Values *values, const OpenCall *open, int32_t result) {
    int32_t state = number_at(&values->values, (size_t)(call_at(values, open->call)->values + open->row));
    size_t mark = values->made.count;
    values->is_ordered = 0;
    const Composite *own = composite_of(values, state), *other = composite_of(values, result);
    if (own != NULL && other != NULL && !is_sliced(values, result)) {
        int32_t count = own->count < other->count ? own->count : other->count;
        for (int32_t place = 0; place < count; place++) {
            int32_t element = item_of(values, state, place), new = item_of(values, result, place);
            if (new == element) continue;
            add_nodes(values, new);
            add_late(values, element, mark);
        }
        return;
    }
    int32_t count = own == NULL ? 1 : own->count;
    for (int32_t place = 0; place < count && values->result == READ; place++) {
        add_whole(values, result, open->call, open->row);
        add_late(values, own == NULL ? state : item_of(values, state, place), mark);
    }
}

/* Return the value of a conditional, whose results are the last ones. */
static int32_t merged(Values *values, const OpenCall *open, int64_t row) {
    size_t first = values->results.count - (size_t)open->pending, mark = values->made.count;
    int32_t condition = operand_value(values, open, row, 0), kind = (int32_t)values->in.passing_kind, count = 0;
    bool are_tuples = true;
    for (size_t index = first; index < values->results.count; index++) {
        int32_t result = number_at(&values->results, index);
        const Composite *own = composite_of(values, result);
        are_tuples = are_tuples && own != NULL && !is_sliced(values, result) && (index == first || own->count == count);
        if (own != NULL) count = own->count;
    }
    int32_t value = are_tuples ? new_tuple(values, (size_t)count) : NO_VALUE;
    for (int32_t place = 0; place < (are_tuples ? count : 1) && values->result == READ; place++) {
        add_nodes(values, condition);
        for (size_t index = first; index < values->results.count; index++) {
            int32_t result = number_at(&values->results, index);
            add_nodes(values, are_tuples ? item_of(values, result, place) : result);
        }
        int32_t node = node_of(values, open, row, mark, kind);
        if (are_tuples) set_item(values, value, place, node);
        else value = node;
    }
    return value;
}

/* End a row whose calls are read, and go to the next one. */
static void end_calls(Values *values, int64_t row, int action) {
    OpenCall open = *top_call(values);
    size_t first = values->results.count - (size_t)open.pending;
    if (action == LOOPS) close_loop(values, &open, number_at(&values->results, first));
    else if (action == BRANCHES) set_value(values, &open, open.row, merged(values, &open, row));
    else set_value(values, &open, open.row, number_at(&values->results, first));
    vector_cut(&values->results, first);
    top_call(values)->pending = 0;
    top_call(values)->row++;
}

static bool may_call(int action) {
    return action == CALLS || action == LOOPS || action == BRANCHES || action == MAKES_EACH;
}

/* Read on in the call on top, up to a call that it makes or to its end. */
static void advance(Values *values) {
    OpenCall *open = top_call(values);
    int32_t computation = call_at(values, open->call)->computation;
    int64_t first = first_row(values, computation), count = row_count(values, computation);
    while (open->row < count && values->result == READ) {
        int64_t row = first + open->row;
        int action = values->in.actions[head_at(values, row)];
        if (open->pending > 0 && open->done < open->pending) {
            if (start_call(values, row, action)) return;
            open = top_call(values);
        } else if (open->pending > 0) {
            end_calls(values, row, action);
        } else if (!may_call(action)) {
            set_value(values, open, open->row, value_of_row(values, open, row, action));
            open->row++;
        } else if (!begin_calls(values, open, row, action)) {
            open->row++;
        }
    }
    if (values->result == READ) leave(values);
}

void read_step(Values *values) {
    if (!enter(values, (int32_t)values->in.entry, NO_VALUE, NONE, NONE)) fail(values, REFUSED);
    while (values->stack.count > 0 && values->result == READ) advance(values);
}
