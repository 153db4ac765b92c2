//! Reads a file that a person named. A pipe would be waited for and a device read for ever, so
//! only a regular file is opened.

use std::{io, path::Path};

pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let kind = std::fs::metadata(path)?;
    match (kind.is_file(), kind.is_dir()) {
        (true, _) => std::fs::read(path),
        (_, true) => Err(io::Error::other("it is a folder")),
        _ => Err(io::Error::other("it is not a regular file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_or_a_folder_is_refused_before_it_is_opened() {
        for (path, words) in [("/dev/zero", "not a regular file"), ("/", "a folder")] {
            assert!(read(Path::new(path)).unwrap_err().to_string().contains(words), "{path}");
        }
    }
}
