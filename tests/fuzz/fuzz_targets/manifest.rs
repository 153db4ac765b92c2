//! A file that claims to be a library, through the reader that looks at it before any code runs.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = atomic_extensions::read_manifest(bytes);
});
