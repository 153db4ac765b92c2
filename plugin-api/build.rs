//! Facts of this build that the manifest of an extension carries.

use std::{env, fs, process::Command};

fn main() {
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let version =
        Command::new(rustc).arg("-V").output().map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    println!("cargo:rustc-env=ATOMIC_RUSTC={}", version.unwrap_or_else(|_| "unknown".into()));
    println!("cargo:rustc-env=ATOMIC_TARGET={}", env::var("TARGET").unwrap_or_default());
    // FNV-1a: this names a build in diagnostics, it guards nothing.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let frozen = "src/abi/frozen.rs";
    for byte in fs::read(frozen).unwrap_or_default() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    println!("cargo:rustc-env=ATOMIC_LAYOUT={hash:016x}");
    println!("cargo:rerun-if-changed={frozen}");
    println!("cargo:rerun-if-changed=build.rs");
}
