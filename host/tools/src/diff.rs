//! What an edit did, as a unified diff.

use similar::TextDiff;
use std::time::Duration;

/// Three lines of context; a diff that would take too long gets coarser instead.
pub fn unified(name: &str, old: &str, new: &str) -> String {
    let diff = TextDiff::configure().timeout(Duration::from_secs(2)).diff_lines(old, new);
    diff.unified_diff().context_radius(3).header(&format!("a/{name}"), &format!("b/{name}")).to_string()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_changed_line_shows_with_its_file() {
        let diff = super::unified("f.txt", "a\nb\n", "a\nc\n");
        assert_eq!(diff, "--- a/f.txt\n+++ b/f.txt\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
    }
}
