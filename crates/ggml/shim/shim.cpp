// llama.cpp called where its C++ may throw: every exception ends here and becomes a status and
// a message. Decides nothing, and adds no behaviour to what succeeds.
//
// An exception that reaches Rust through an `extern "C"` function ends the process. Structs that
// llama.cpp takes by value come as pointers, so that Rust and C++ agree on how they are passed.

#include "llama.h"

#include <cstdlib>
#include <cstring>
#include <exception>

namespace {

constexpr int RETURNED = 0;
constexpr int THROWN = 1;

// Where the words of an exception go: `size` bytes at `text`, cut where they end.
struct Words {
    char * text;
    size_t size;
};

void say(Words words, const char * text) {
    if (words.size == 0) {
        return;
    }
    size_t length = std::strlen(text);
    length = length < words.size ? length : words.size - 1;
    std::memcpy(words.text, text, length);
    words.text[length] = '\0';
}

template <typename Call> int guarded(Words words, Call call) {
    try {
        call();
        return RETURNED;
    } catch (const std::exception & error) {
        say(words, error.what());
    } catch (...) {
        say(words, "an exception of unknown type");
    }
    return THROWN;
}

void (*last_words)(const char *) = nullptr;

// In place of ggml's handler, which starts a debugger found on PATH.
[[noreturn]] void on_terminate() {
    const char * text = "an exception nobody caught";
    if (std::exception_ptr thrown = std::current_exception()) {
        try {
            std::rethrow_exception(thrown);
        } catch (const std::exception & error) {
            last_words(error.what());
            std::abort();
        } catch (...) {
        }
    }
    last_words(text);
    std::abort();
}

}  // namespace

extern "C" {

// `say` hears the message before an abort, be it an assertion or an exception nobody caught.
void motley_on_abort(void (*say)(const char *)) {
    last_words = say;
    ggml_set_abort_callback(say);
    std::set_terminate(on_terminate);
}

int motley_model_load_from_file(
        const char * path, const llama_model_params * params, llama_model ** model, Words words) {
    return guarded(words, [&] { *model = llama_model_load_from_file(path, *params); });
}

int motley_model_load_from_file_ptr(
        FILE * file, const llama_model_params * params, llama_model ** model, Words words) {
    return guarded(words, [&] { *model = llama_model_load_from_file_ptr(file, *params); });
}

int motley_init_from_model(
        llama_model * model, const llama_context_params * params, llama_context ** context, Words words) {
    return guarded(words, [&] { *context = llama_init_from_model(model, *params); });
}

int motley_tokenize(
        const llama_vocab * vocab,
        const char * text,
        int32_t text_length,
        llama_token * tokens,
        int32_t capacity,
        bool begin,
        bool special,
        int32_t * count,
        Words words) {
    return guarded(words, [&] {
        *count = llama_tokenize(vocab, text, text_length, tokens, capacity, begin, special);
    });
}

int motley_token_to_piece(
        const llama_vocab * vocab,
        llama_token token,
        char * bytes,
        int32_t capacity,
        bool special,
        int32_t * count,
        Words words) {
    return guarded(words, [&] {
        *count = llama_token_to_piece(vocab, token, bytes, capacity, 0, special);
    });
}

// Waits for asynchronous backends as well, when `code` is 0.
int motley_decode(llama_context * context, const llama_batch * batch, int32_t * code, Words words) {
    return guarded(words, [&] {
        *code = llama_decode(context, *batch);
        if (*code == 0) {
            llama_synchronize(context);
        }
    });
}

int motley_memory_seq_rm(
        llama_context * context, int32_t sequence, int32_t from, bool * removed, Words words) {
    return guarded(words, [&] {
        *removed = llama_memory_seq_rm(llama_get_memory(context), sequence, from, -1);
    });
}

int motley_memory_seq_cp(
        llama_context * context, int32_t from, int32_t to, int32_t first, int32_t end, Words words) {
    return guarded(words, [&] {
        llama_memory_seq_cp(llama_get_memory(context), from, to, first, end);
    });
}

int motley_memory_clear(llama_context * context, Words words) {
    return guarded(words, [&] { llama_memory_clear(llama_get_memory(context), false); });
}

}  // extern "C"
