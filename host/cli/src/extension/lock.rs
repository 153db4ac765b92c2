//! The lock file of a new crate: a checked-in template with every dependency, whose versions
//! are those of this workspace, plus the block of the crate itself. `--locked` compares the
//! file as text, so the block goes exactly where cargo would write it.

const TEMPLATE: &str = include_str!("../../templates/extension/Cargo.lock");

/// A package of the lock file that is the user's own.
#[derive(Debug, Clone)]
pub struct Own<'a> {
    pub name: &'a str,
    pub version: &'a str,
    /// Without versions; every one must be in the template.
    pub dependencies: Vec<String>,
}

impl Own<'_> {
    fn block(&self) -> String {
        let mut names = self.dependencies.clone();
        names.sort();
        names.dedup();
        let list: String = names.iter().map(|d| format!(" \"{d}\",\n")).collect();
        format!("name = \"{}\"\nversion = \"{}\"\ndependencies = [\n{list}]", self.name, self.version)
    }
}

/// The template's lock with these packages in it.
pub fn with(own: &[Own<'_>]) -> String {
    let mut parts = TEMPLATE.split("[[package]]\n");
    let head = parts.next().unwrap_or_default();
    let mut blocks: Vec<String> = parts.map(|b| b.trim_end().to_owned()).collect();
    blocks.extend(own.iter().map(Own::block));
    blocks.sort_by(|a, b| name(a).cmp(name(b)));
    let mut out = head.to_owned();
    for (i, block) in blocks.iter().enumerate() {
        let gap = if i == 0 { "" } else { "\n" };
        out.push_str(&format!("{gap}[[package]]\n{block}\n"));
    }
    out
}

/// Whether a dependency has that name, which an extension then cannot have.
pub fn is_taken(crate_name: &str) -> bool {
    TEMPLATE.split("[[package]]\n").skip(1).any(|block| name(block) == crate_name)
}

fn name(block: &str) -> &str {
    block.strip_prefix("name = \"").and_then(|b| b.split('"').next()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(lock: &str) -> Vec<(String, String)> {
        let field = |b: &str, key: &str| {
            let start = format!("{key} = \"");
            b.lines().find_map(|l| l.strip_prefix(&start)?.strip_suffix('"').map(str::to_owned))
        };
        let blocks = lock.split("[[package]]\n").skip(1);
        blocks.map(|b| (field(b, "name").unwrap(), field(b, "version").unwrap())).collect()
    }

    /// The demo and the tests build with both locks in one target directory.
    #[test]
    fn the_template_has_the_versions_of_the_workspace() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock");
        let workspace = versions(&std::fs::read_to_string(root).unwrap());
        let foreign: Vec<_> = versions(TEMPLATE).into_iter().filter(|p| !workspace.contains(p)).collect();
        assert!(foreign.is_empty(), "not in the workspace's Cargo.lock: {foreign:?}");
        assert!(versions(TEMPLATE).iter().any(|(n, _)| n == "atomic-plugin-api"));
    }

    #[test]
    fn the_crates_own_block_stands_in_its_sorted_place() {
        let own = Own {
            name: "mine",
            version: "0.1.0",
            dependencies: vec!["serde".into(), "atomic-plugin-api".into()],
        };
        let lock = with(&[own]);
        let names: Vec<String> = versions(&lock).into_iter().map(|(n, _)| n).collect();
        assert!(names.is_sorted(), "{names:?}");
        assert!(lock.contains("name = \"mine\"\nversion = \"0.1.0\"\ndependencies = [\n \"atomic-plugin-api\",\n \"serde\",\n]\n"));
    }

    #[test]
    fn the_name_of_a_dependency_is_taken() {
        assert!(is_taken("serde") && is_taken("atomic-plugin-api"));
        assert!(!is_taken("my-extension"));
    }
}
