//! Writes `docs/events.md` anew.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    std::fs::create_dir_all(repository.join("docs"))?;
    std::fs::write(repository.join("docs/events.md"), atomic_tests::events_page::page(&repository))
}
