//! A compiler in Rust: ask SNAPSHOT MODULE
use std::ffi::{c_char, c_int, CStr, CString};
use std::ptr;

#[link(name = "tilewright")]
extern "C" {
    fn tilewright_abi() -> c_int;
    fn tilewright_version() -> *const c_char;
    fn tilewright_open(path: *const c_char, device: *const c_char, db: *mut u64, error: *mut *mut c_char) -> c_int;
    fn tilewright_close(db: u64) -> c_int;
    fn tilewright_free(result: *mut c_char);
    fn tilewright_lookup(db: u64, text: *const u8, length: usize, fusion: *const c_char, flags: c_int, result: *mut *mut c_char) -> c_int;
}

/// Takes over a result.
unsafe fn take(text: *mut c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    let owned = CStr::from_ptr(text).to_string_lossy().into_owned();
    tilewright_free(text);
    owned
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let path = CString::new(args[1].as_str()).unwrap();
    let module = std::fs::read(&args[2]).unwrap();
    let mut db = 0u64;
    let mut text = ptr::null_mut();
    unsafe {
        assert_eq!(tilewright_abi(), 1);
        println!("{}", CStr::from_ptr(tilewright_version()).to_string_lossy());
        if tilewright_open(path.as_ptr(), c"cpu".as_ptr(), &mut db, &mut text) != 0 {
            eprintln!("{}", take(text));
            std::process::exit(1);
        }
        let status = tilewright_lookup(db, module.as_ptr(), module.len(), ptr::null(), 0, &mut text);
        println!("{status} {}", take(text));
        assert_eq!(tilewright_close(db), 0);
    }
}
