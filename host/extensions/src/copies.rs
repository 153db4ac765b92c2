use crate::refusal::Why;
use std::path::*;
pub(crate) fn another(_: &Path, _: usize) -> Result<PathBuf, Why> {
    Err(Why::NotAnExtension)
}
