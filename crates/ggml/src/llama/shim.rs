//! llama.cpp's functions that may throw, each as a `Result`: exceptions end in `shim/shim.cpp`.
//! Also its last words: what it says before it aborts. Holds no function that cannot throw;
//! those are called through the bindings.

use llama_cpp_sys_2 as sys;
use std::ffi::{CStr, c_char, c_int};
use std::io::Write;
use std::ops::Range;
use std::ptr::null_mut;

/// What an exception said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("llama.cpp threw an exception: {0}")]
pub struct Thrown(pub String);

/// Bytes of an exception's words that are kept.
const WORDS_BYTES: usize = 1024;

/// Prints the message of an abort as one line, in place of ggml's own way: it starts whatever
/// `gdb` is on the PATH and attaches it to this process.
pub(super) fn install_last_words() {
    // SAFETY: a plain function that lives forever; called once, before other threads compute.
    unsafe { motley_on_abort(last_words) }
}

/// Loads from a path.
///
/// # Safety
/// `path` ends with NUL, and what `params` points at is live.
pub(super) unsafe fn model_load_from_file(
    path: &CStr,
    params: &sys::llama_model_params,
) -> Result<*mut sys::llama_model, Thrown> {
    let mut model = null_mut();
    // SAFETY: by the caller; the places for results are live.
    caught(|words| unsafe {
        motley_model_load_from_file(path.as_ptr(), params, &raw mut model, words)
    })?;
    Ok(model)
}

/// Loads from a stream.
///
/// # Safety
/// The stream is open, and what `params` points at is live.
pub(super) unsafe fn model_load_from_file_ptr(
    file: *mut libc::FILE,
    params: &sys::llama_model_params,
) -> Result<*mut sys::llama_model, Thrown> {
    let mut model = null_mut();
    // SAFETY: by the caller; the places for results are live.
    caught(|words| unsafe {
        motley_model_load_from_file_ptr(file, params, &raw mut model, words)
    })?;
    Ok(model)
}

/// Makes a context.
///
/// # Safety
/// The model is live, and so is what `params` points at.
pub(super) unsafe fn init_from_model(
    model: *mut sys::llama_model,
    params: &sys::llama_context_params,
) -> Result<*mut sys::llama_context, Thrown> {
    let mut context = null_mut();
    // SAFETY: by the caller; the places for results are live.
    caught(|words| unsafe { motley_init_from_model(model, params, &raw mut context, words) })?;
    Ok(context)
}

/// Fills `tokens`; the count, negative when there is too little room.
///
/// # Safety
/// The vocabulary is live.
pub(super) unsafe fn tokenize(
    vocab: *const sys::llama_vocab,
    text: &str,
    tokens: &mut [sys::llama_token],
    begin: bool,
    special: bool,
) -> Result<i32, Thrown> {
    let text_length = i32::try_from(text.len()).map_err(|_| Thrown("text of 2 GiB".into()))?;
    let capacity = i32::try_from(tokens.len()).unwrap_or(i32::MAX);
    let (text, tokens) = (text.as_ptr().cast(), tokens.as_mut_ptr());
    let mut count = 0;
    // SAFETY: by the caller; pointers and lengths describe live buffers.
    caught(|words| unsafe {
        motley_tokenize(
            vocab,
            text,
            text_length,
            tokens,
            capacity,
            begin,
            special,
            &raw mut count,
            words,
        )
    })?;
    Ok(count)
}

/// Fills `bytes`; the count, negative when there is too little room.
///
/// # Safety
/// The vocabulary is live.
pub(super) unsafe fn token_to_piece(
    vocab: *const sys::llama_vocab,
    token: sys::llama_token,
    bytes: &mut [u8],
    special: bool,
) -> Result<i32, Thrown> {
    let capacity = i32::try_from(bytes.len()).unwrap_or(i32::MAX);
    let bytes = bytes.as_mut_ptr().cast();
    let mut count = 0;
    // SAFETY: by the caller; pointer and length describe a live buffer.
    caught(|words| unsafe {
        motley_token_to_piece(vocab, token, bytes, capacity, special, &raw mut count, words)
    })?;
    Ok(count)
}

/// Decodes and waits; llama.cpp's own code.
///
/// # Safety
/// The context is live and used by nobody else; the batch's arrays are live.
pub(super) unsafe fn decode(
    context: *mut sys::llama_context,
    batch: &sys::llama_batch,
) -> Result<i32, Thrown> {
    let mut code = 0;
    // SAFETY: by the caller.
    caught(|words| unsafe { motley_decode(context, batch, &raw mut code, words) })?;
    Ok(code)
}

/// Cuts a sequence from a position on; whether that was possible.
///
/// # Safety
/// The context is live and used by nobody else.
pub(super) unsafe fn memory_seq_rm(
    context: *mut sys::llama_context,
    sequence: i32,
    from: i32,
) -> Result<bool, Thrown> {
    let mut removed = false;
    // SAFETY: by the caller.
    caught(|words| unsafe {
        motley_memory_seq_rm(context, sequence, from, &raw mut removed, words)
    })?;
    Ok(removed)
}

/// Lets `to` share the positions of `from` that are in `positions`.
///
/// # Safety
/// As [`memory_seq_rm`].
pub(super) unsafe fn memory_seq_cp(
    context: *mut sys::llama_context,
    from: i32,
    to: i32,
    positions: Range<i32>,
) -> Result<(), Thrown> {
    let Range { start, end } = positions;
    // SAFETY: by the caller.
    caught(|words| unsafe { motley_memory_seq_cp(context, from, to, start, end, words) })
}

/// Empties the memory of a context.
///
/// # Safety
/// As [`memory_seq_rm`].
pub(super) unsafe fn memory_clear(context: *mut sys::llama_context) -> Result<(), Thrown> {
    // SAFETY: by the caller.
    caught(|words| unsafe { motley_memory_clear(context, words) })
}

fn caught(call: impl FnOnce(Words) -> c_int) -> Result<(), Thrown> {
    let mut text = [0_u8; WORDS_BYTES];
    let words = Words { text: text.as_mut_ptr().cast(), size: text.len() };
    if call(words) == RETURNED {
        return Ok(());
    }
    let text = CStr::from_bytes_until_nul(&text).unwrap_or(c"");
    Err(Thrown(text.to_string_lossy().into_owned()))
}

/// The process is about to end on whatever thread this is: no locks, no allocation, no log.
unsafe extern "C" fn last_words(message: *const c_char) {
    // SAFETY: ggml and the shim pass a string that ends with NUL.
    let message = unsafe { CStr::from_ptr(message) }.to_bytes();
    let mut line = [0_u8; WORDS_BYTES];
    let mut rest = line.as_mut_slice();
    for part in [b"motley: llama.cpp gave up: ".as_slice(), message] {
        let part = &part[..part.len().min(rest.len() - 1)];
        rest.write_all(part).expect("it fits");
    }
    rest[0] = b'\n';
    let length = WORDS_BYTES - rest.len() + 1;
    // SAFETY: the line has this length; descriptor 2 may be closed, which is an error and no harm.
    unsafe { libc::write(STDERR, line.as_ptr().cast(), length as _) };
}

const RETURNED: c_int = 0;
/// The descriptor, on every system.
const STDERR: c_int = 2;

/// `Words` of the shim.
#[repr(C)]
#[derive(Clone, Copy)]
struct Words {
    text: *mut c_char,
    size: usize,
}

unsafe extern "C" {
    fn motley_on_abort(say: unsafe extern "C" fn(*const c_char));
    fn motley_model_load_from_file(
        path: *const c_char,
        params: *const sys::llama_model_params,
        model: *mut *mut sys::llama_model,
        words: Words,
    ) -> c_int;
    fn motley_model_load_from_file_ptr(
        file: *mut libc::FILE,
        params: *const sys::llama_model_params,
        model: *mut *mut sys::llama_model,
        words: Words,
    ) -> c_int;
    fn motley_init_from_model(
        model: *mut sys::llama_model,
        params: *const sys::llama_context_params,
        context: *mut *mut sys::llama_context,
        words: Words,
    ) -> c_int;
    fn motley_tokenize(
        vocab: *const sys::llama_vocab,
        text: *const c_char,
        text_length: i32,
        tokens: *mut sys::llama_token,
        capacity: i32,
        begin: bool,
        special: bool,
        count: *mut i32,
        words: Words,
    ) -> c_int;
    fn motley_token_to_piece(
        vocab: *const sys::llama_vocab,
        token: sys::llama_token,
        bytes: *mut c_char,
        capacity: i32,
        special: bool,
        count: *mut i32,
        words: Words,
    ) -> c_int;
    fn motley_decode(
        context: *mut sys::llama_context,
        batch: *const sys::llama_batch,
        code: *mut i32,
        words: Words,
    ) -> c_int;
    fn motley_memory_seq_rm(
        context: *mut sys::llama_context,
        sequence: i32,
        from: i32,
        removed: *mut bool,
        words: Words,
    ) -> c_int;
    fn motley_memory_seq_cp(
        context: *mut sys::llama_context,
        from: i32,
        to: i32,
        first: i32,
        end: i32,
        words: Words,
    ) -> c_int;
    fn motley_memory_clear(context: *mut sys::llama_context, words: Words) -> c_int;
}
