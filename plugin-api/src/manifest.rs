//! The manifest section: written by a `const fn` in the author's crate, read by the host
//! from the file before any code of the library can run (boundary.md 1).
//!
//! Layout: 8 bytes of magic, `u32` schema, `u32` length (both little-endian), JSON.

use serde::{Deserialize, Serialize};

/// First bytes of the section.
pub const MAGIC: &[u8; 8] = b"ATOMICX\x01";
/// The layout described above.
pub const SCHEMA: u32 = 1;
/// Longest JSON that is read, in bytes.
pub const MAX_JSON: usize = 64 * 1024;
/// Magic, schema, length.
pub const HEADER: usize = 16;
/// The section's name on ELF, Mach-O and PE.
pub const SECTIONS: [&str; 3] = [".atomicext", "__atomicext", ".atmext"];

/// The api version of this crate, which an extension built with it carries.
pub const API_VERSION: &str = env!("CARGO_PKG_VERSION");
/// `rustc -V` of this build.
pub const RUSTC: &str = env!("ATOMIC_RUSTC");
/// Target triple of this build.
pub const TARGET: &str = env!("ATOMIC_TARGET");
/// Hash of the frozen types' source; diagnostics only, a different one loads.
pub const LAYOUT: &str = env!("ATOMIC_LAYOUT");

/// What a library says of itself.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// The extension's id: `[A-Za-z0-9][A-Za-z0-9._-]*`, at most 64 characters.
    pub name: String,
    /// Semver of the extension.
    pub version: String,
    /// Semver of plugin-api; the host accepts its own major.
    pub api_version: String,
    /// See `LAYOUT`.
    #[serde(default)]
    pub layout: String,
    /// See `RUSTC`.
    #[serde(default)]
    pub rustc: String,
    /// Target triple.
    pub target: String,
    /// `unwind` or `abort`; the latter is refused.
    pub panic: String,
    /// `debug` or `release`.
    #[serde(default)]
    pub profile: String,
    /// Declared, not enforced.
    #[serde(default)]
    pub events: Vec<String>,
    /// Shared tables it provides.
    #[serde(default)]
    pub provides: Vec<String>,
    /// Shared tables it needs.
    #[serde(default)]
    pub requires: Vec<String>,
}

/// Why a section is no manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ManifestError {
    /// Other bytes than the magic.
    Magic,
    /// A schema this version does not read.
    Schema(u32),
    /// Longer than `MAX_JSON`, or than the section.
    Length(usize),
    /// Not the JSON of a manifest.
    Json(String),
}

impl std::fmt::Display for ManifestError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ManifestError::Magic => f.write_str("the manifest section does not begin with the magic bytes"),
            ManifestError::Schema(n) => write!(f, "manifest schema {n}, this program reads schema {SCHEMA}"),
            ManifestError::Length(n) => write!(f, "manifest of {n} bytes: truncated or too long"),
            ManifestError::Json(e) => write!(f, "manifest is not valid: {e}"),
        }
    }
}

impl std::error::Error for ManifestError {}

/// Reads a section. Never panics, whatever the bytes.
///
/// # Errors
/// See `ManifestError`.
pub fn decode(section: &[u8]) -> Result<Manifest, ManifestError> {
    let word = |at: usize| section.get(at..at + 4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    if section.get(..8) != Some(MAGIC.as_slice()) {
        return Err(ManifestError::Magic);
    }
    let schema = word(8).ok_or(ManifestError::Length(section.len()))?;
    if schema != SCHEMA {
        return Err(ManifestError::Schema(schema));
    }
    let len = word(12).ok_or(ManifestError::Length(section.len()))? as usize;
    if len > MAX_JSON {
        return Err(ManifestError::Length(len));
    }
    let json = section.get(HEADER..HEADER + len).ok_or(ManifestError::Length(len))?;
    serde_json::from_slice(json).map_err(|e| ManifestError::Json(e.to_string()))
}

/// What the author's crate contributes; the rest are constants of this crate.
#[doc(hidden)]
pub struct Parts {
    pub name: &'static str,
    pub version: &'static str,
    pub panic: &'static str,
    pub profile: &'static str,
    pub events: &'static [&'static str],
    pub provides: &'static [&'static str],
    pub requires: &'static [&'static str],
}

struct Out<const N: usize> {
    bytes: [u8; N],
    at: usize,
}

impl<const N: usize> Out<N> {
    const fn put(&mut self, s: &[u8]) {
        let mut i = 0;
        while i < s.len() {
            // A counting pass has no room: it only counts.
            if N > 0 {
                self.bytes[self.at] = s[i];
            }
            self.at += 1;
            i += 1;
        }
    }
    const fn value(&mut self, s: &str) {
        let b = s.as_bytes();
        let mut i = 0;
        while i < b.len() {
            assert!(
                b[i] >= 0x20 && b[i] != b'"' && b[i] != b'\\',
                "a character that the manifest does not allow"
            );
            i += 1;
        }
        self.put(b"\"");
        self.put(b);
        self.put(b"\"");
    }
    const fn pair(&mut self, key: &str, value: &str) {
        self.put(b"\"");
        self.put(key.as_bytes());
        self.put(b"\":");
        self.value(value);
        self.put(b",");
    }
    const fn list(&mut self, key: &str, values: &[&str], last: bool) {
        self.put(b"\"");
        self.put(key.as_bytes());
        self.put(b"\":[");
        let mut i = 0;
        while i < values.len() {
            if i > 0 {
                self.put(b",");
            }
            self.value(values[i]);
            i += 1;
        }
        self.put(if last { b"]" } else { b"]," });
    }
    const fn json(&mut self, p: &Parts) {
        self.put(b"{");
        self.pair("name", p.name);
        self.pair("version", p.version);
        self.pair("apiVersion", API_VERSION);
        self.pair("layout", LAYOUT);
        self.pair("rustc", RUSTC);
        self.pair("target", TARGET);
        self.pair("panic", p.panic);
        self.pair("profile", p.profile);
        self.list("events", p.events, false);
        self.list("provides", p.provides, false);
        self.list("requires", p.requires, true);
        self.put(b"}");
    }
}

/// Bytes of the whole section.
#[doc(hidden)]
#[must_use]
pub const fn encoded_len(parts: &Parts) -> usize {
    let mut out = Out::<0> { bytes: [], at: HEADER };
    out.json(parts);
    out.at
}

/// The section.
#[doc(hidden)]
#[must_use]
pub const fn encode<const N: usize>(parts: &Parts) -> [u8; N] {
    let mut out = Out::<N> { bytes: [0; N], at: 0 };
    out.put(MAGIC);
    out.put(&SCHEMA.to_le_bytes());
    out.put(&((N - HEADER) as u32).to_le_bytes());
    out.json(parts);
    out.bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: Parts = Parts {
        name: "demo",
        version: "0.3.1",
        panic: "unwind",
        profile: "debug",
        events: &["tool_call", "input"],
        provides: &[],
        requires: &["t.v1"],
    };

    #[test]
    fn what_the_const_side_writes_the_host_reads() {
        const N: usize = encoded_len(&PARTS);
        let section = encode::<N>(&PARTS);
        let m = decode(&section).unwrap();
        assert_eq!(
            (m.name.as_str(), m.version.as_str(), m.api_version.as_str()),
            ("demo", "0.3.1", API_VERSION)
        );
        assert_eq!(
            (m.events, m.requires),
            (vec!["tool_call".to_owned(), "input".to_owned()], vec!["t.v1".to_owned()])
        );
    }

    #[test]
    fn a_section_cut_anywhere_is_refused_without_a_panic() {
        const N: usize = encoded_len(&PARTS);
        let section = encode::<N>(&PARTS);
        for cut in 0..N {
            assert!(decode(&section[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn a_length_beyond_the_limit_is_refused_before_it_is_believed() {
        let mut s = MAGIC.to_vec();
        s.extend(SCHEMA.to_le_bytes());
        s.extend(u32::MAX.to_le_bytes());
        assert_eq!(decode(&s), Err(ManifestError::Length(u32::MAX as usize)));
    }
}
