//! What a file says of itself, read before any code of it can run (boundary.md 1). Safe
//! code over foreign bytes: whatever they are, the answer is a manifest or a reason.

use crate::refusal::{Refusal, Why};
use atomic_plugin_api::manifest::{self, Manifest};
use object::{
    Object, ObjectSection,
    read::macho::{FatArch, MachOFatFile32, MachOFatFile64},
};
use std::path::Path;

/// Reads the manifest of a library. Decides nothing yet.
///
/// # Errors
/// `extension::not_a_library`, `extension::not_an_extension`, `extension::bad_manifest`.
pub fn read_manifest(bytes: &[u8]) -> Result<Manifest, Why> {
    let bytes = thin(bytes)?;
    let file = object::File::parse(bytes).map_err(|e| Why::NotALibrary { detail: e.to_string() })?;
    let section =
        manifest::SECTIONS.iter().find_map(|name| file.section_by_name(name)).ok_or(Why::NotAnExtension)?;
    let data = section.data().map_err(|e| Why::BadManifest { detail: e.to_string() })?;
    let manifest = manifest::decode(data).map_err(|e| Why::BadManifest { detail: e.to_string() })?;
    // Who says that he is of another target is refused for that.
    if manifest.target == manifest::TARGET {
        same_machine(file.format(), file.architecture())?;
    }
    Ok(manifest)
}

/// The header against this machine, before the system's loader is asked: it says of another
/// machine's file that it cannot be found.
fn same_machine(format: object::BinaryFormat, machine: object::Architecture) -> Result<(), Why> {
    use object::{Architecture as Arch, BinaryFormat};
    let here = match std::env::consts::ARCH {
        "x86_64" => Arch::X86_64,
        "aarch64" => Arch::Aarch64,
        "x86" => Arch::I386,
        "arm" => Arch::Arm,
        "riscv64" => Arch::Riscv64,
        "s390x" => Arch::S390x,
        "powerpc64" => Arch::PowerPc64,
        "loongarch64" => Arch::LoongArch64,
        // Not known here: left to the loader.
        _ => machine,
    };
    let system = BinaryFormat::native_object();
    if format == system && machine == here {
        return Ok(());
    }
    let name = |format, machine| format!("{format:?} {machine:?}");
    Err(Why::OtherMachine { built_for: name(format, machine), host: name(system, here) })
}

/// The part of a universal Mach-O file that is this machine's.
fn thin(bytes: &[u8]) -> Result<&[u8], Why> {
    let bad = |e: object::Error| Why::NotALibrary { detail: e.to_string() };
    let wanted = if cfg!(target_arch = "aarch64") {
        object::Architecture::Aarch64
    } else {
        object::Architecture::X86_64
    };
    fn pick<'a, A: FatArch>(arches: &[A], wanted: object::Architecture, bytes: &'a [u8]) -> Option<&'a [u8]> {
        arches.iter().find(|a| a.architecture() == wanted)?.data(bytes).ok()
    }
    match object::FileKind::parse(bytes) {
        Ok(object::FileKind::MachOFat32) => {
            let fat = MachOFatFile32::parse(bytes).map_err(bad)?;
            pick(fat.arches(), wanted, bytes)
                .ok_or_else(|| Why::NotALibrary { detail: "no part for this architecture".into() })
        }
        Ok(object::FileKind::MachOFat64) => {
            let fat = MachOFatFile64::parse(bytes).map_err(bad)?;
            pick(fat.arches(), wanted, bytes)
                .ok_or_else(|| Why::NotALibrary { detail: "no part for this architecture".into() })
        }
        _ => Ok(bytes),
    }
}

/// The host's verdict on a manifest: target, panic strategy, api major, name.
///
/// # Errors
/// The first rule it breaks.
pub fn judge(m: &Manifest) -> Result<(), Why> {
    if m.target != manifest::TARGET {
        return Err(Why::OtherTarget { built_for: m.target.clone(), host: manifest::TARGET.into() });
    }
    if m.panic != "unwind" {
        return Err(Why::PanicAbort);
    }
    let api = semver::Version::parse(&m.api_version)
        .map_err(|e| Why::BadManifest { detail: format!("apiVersion: {e}") })?;
    let host = semver::Version::parse(manifest::API_VERSION)
        .map_err(|e| Why::BadManifest { detail: e.to_string() })?;
    if api.major > host.major {
        return Err(Why::ApiTooNew { built_for: m.api_version.clone(), host: manifest::API_VERSION.into() });
    }
    if api.major < host.major {
        return Err(Why::ApiTooOld { built_for: m.api_version.clone(), host: manifest::API_VERSION.into() });
    }
    if !valid_name(&m.name) {
        return Err(Why::BadName { name: m.name.clone() });
    }
    Ok(())
}

/// `[A-Za-z0-9][A-Za-z0-9._-]*`, at most 64 characters.
fn valid_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    name.len() <= 64
        && bytes.next().is_some_and(|b| b.is_ascii_alphanumeric())
        && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

/// Differences that load all the same, for `inspect`.
pub fn remarks(m: &Manifest) -> Vec<String> {
    let mut notes = Vec::new();
    if m.api_version != manifest::API_VERSION {
        notes.push(format!("built with api {}, this host has {}: compatible, operations missing on one side answer \"unsupported\"", m.api_version, manifest::API_VERSION));
    }
    if m.layout != manifest::LAYOUT {
        notes.push(format!(
            "layout fingerprint {} differs from the host's {}; the tables are checked when it loads",
            m.layout,
            manifest::LAYOUT
        ));
    }
    if m.rustc != manifest::RUSTC {
        notes.push(format!("built by {}, the host by {}", m.rustc, manifest::RUSTC));
    }
    notes
}

/// Everything `inspect` shows. Never executes anything of the file.
#[derive(Clone, Debug)]
pub struct Inspection {
    pub manifest: Manifest,
    pub sha256: String,
    pub size: u64,
    pub notes: Vec<String>,
}

/// Looks into a file.
///
/// # Errors
/// A card: what, which file, why, what to do. The manifest of a refused but readable extension
/// is lost; its reason names what matters.
pub fn inspect(path: &Path) -> Result<Inspection, Refusal> {
    let unreadable = |e: std::io::Error| Refusal::new(path, Why::Unreadable { detail: e.to_string() });
    // A pipe would be waited for, a device read for ever.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(Refusal::new(path, Why::NotALibrary { detail: "not a regular file".into() }));
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    let manifest = read_manifest(&bytes).map_err(|why| Refusal::new(path, why))?;
    judge(&manifest).map_err(|why| Refusal::new(path, why).named(&manifest))?;
    let notes = remarks(&manifest);
    Ok(Inspection { sha256: sha256(&bytes), size: bytes.len() as u64, manifest, notes })
}

/// Lower-case hex.
pub fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest;
    use std::fmt::Write;
    sha2::Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut s, b| {
        let _ = write!(s, "{b:02x}");
        s
    })
}
