//! Finding and reading skills: folders with a `SKILL.md`, or single files that say of themselves
//! what they are. A skill's own folder is not looked into any further.

use super::{
    Place, Taken,
    front_matter::{self, Parsed, Value},
    read,
};
use atomic_agent::prompt::lent::Skill;
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

const FILE: &str = "SKILL.md";
const DEPTH: usize = 6;
/// Folders looked into below one place.
const FOLDERS: usize = 2_000;
const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 1024;

pub fn load(places: &[Place], warnings: &mut Vec<String>) -> Vec<Skill> {
    let mut taken = Taken { files: HashSet::new(), names: Vec::new(), warnings };
    let mut skills = Vec::new();
    for place in places {
        let files = match place.path.is_dir() {
            true => find(&place.path, taken.warnings),
            false if place.path.is_file() => vec![place.path.clone()],
            false => {
                if place.named {
                    taken.warnings.push(format!("there are no skills at {}", place.path.display()));
                }
                continue;
            }
        };
        for file in files {
            if taken.is_new(&file)
                && let Some(skill) = one(place, &file, taken.warnings)
                && taken.claim("skill", &skill.name, &file)
            {
                skills.push(skill);
            }
        }
    }
    skills
}

/// The skill files below a folder, in the order of their names.
fn find(root: &Path, warnings: &mut Vec<String>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = FOLDERS;
    let mut seen = HashSet::new();
    look(root, 0, &mut seen, &mut left, &mut found);
    if left == 0 {
        let text = format!(
            "{} holds more than {FOLDERS} folders: skills beyond that are not looked for",
            root.display()
        );
        warnings.push(text);
    }
    found
}

fn look(dir: &Path, depth: usize, seen: &mut HashSet<PathBuf>, left: &mut usize, found: &mut Vec<PathBuf>) {
    let Ok(real) = dir.canonicalize() else { return };
    // A link that leads back to where we came from, or to what was looked into already.
    if *left == 0 || depth > DEPTH || !seen.insert(real) {
        return;
    }
    *left -= 1;
    let own = dir.join(FILE);
    if own.is_file() {
        found.push(own);
        return;
    }
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    let mut entries: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') || name == "node_modules" {
            continue;
        }
        if path.is_dir() {
            // A link out of the tree is followed, one to a folder above is not.
            let above =
                || path.canonicalize().is_ok_and(|to| dir.canonicalize().is_ok_and(|d| d.starts_with(to)));
            if !(path.is_symlink() && above()) {
                look(&path, depth + 1, seen, left, found);
            }
        } else if depth == 0 && name.ends_with(".md") {
            found.push(path);
        }
    }
}

fn one(place: &Place, file: &Path, warnings: &mut Vec<String>) -> Option<Skill> {
    let text = read(file, warnings)?;
    let is_folder = file.file_name().is_some_and(|n| n == FILE);
    let parsed = match front_matter::parse(&text) {
        Ok(parsed) => parsed,
        Err(b) => {
            warnings.push(format!("skill {}:{}:{} is not used: {}", file.display(), b.line, b.column, b.why));
            return None;
        }
    };
    // A README among skills is none.
    if !is_folder && !place.path.is_file() && !parsed.fields.contains_key("description") {
        return None;
    }
    match skill(place, file, &parsed, is_folder) {
        Ok((skill, said)) => {
            warnings.extend(said.map(|said| format!("skill {}: {said}", file.display())));
            Some(skill)
        }
        Err(why) => {
            warnings.push(format!("skill {} is not used: {why}", file.display()));
            None
        }
    }
}

fn skill(
    place: &Place,
    file: &Path,
    parsed: &Parsed<'_>,
    is_folder: bool,
) -> Result<(Skill, Option<String>), String> {
    let base_dir = file.parent().unwrap_or(file).to_owned();
    let called = if is_folder { base_dir.file_name() } else { file.file_stem() };
    let called = called.unwrap_or_default().to_string_lossy().into_owned();
    let text = |key: &str| match parsed.fields.get(key) {
        None => Ok(None),
        Some(value) => value
            .text()
            .map(|t| Some(t.trim().to_owned()).filter(|t| !t.is_empty()))
            .ok_or_else(|| format!("its {key} is no text")),
    };
    let name = text("name")?.unwrap_or_else(|| called.clone());
    let description = text("description")?.ok_or("it has no description")?;
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.contains(char::is_whitespace) || name.contains(['/', ':']) || name.len() > MAX_NAME {
        return Err(format!("its name {name:?} cannot be typed after /skill:"));
    }
    let said =
        if !name.chars().all(word) || name.starts_with('-') || name.ends_with('-') || name.contains("--") {
            Some(format!("its name {name} should be lower-case letters, digits and single hyphens"))
        } else if is_folder && name != called {
            Some(format!("its name {name} is not that of its folder, {called}"))
        } else if description.chars().count() > MAX_DESCRIPTION {
            Some(format!("its description is longer than {MAX_DESCRIPTION} characters"))
        } else {
            None
        };
    let skill = Skill {
        name,
        description,
        file_path: file.to_owned(),
        base_dir,
        allowed_tools: tools(parsed.fields.get("allowed-tools"))?,
        disable_model_invocation: text("disable-model-invocation")?.as_deref() == Some("true"),
        source_info: place.source_info(file),
        body: parsed.body.to_owned(),
    };
    Ok((skill, said))
}

/// Names apart by commas or spaces; what is in parentheses belongs to its name.
fn tools(value: Option<&Value>) -> Result<Vec<String>, String> {
    let text = match value {
        None => return Ok(Vec::new()),
        Some(Value::List(items)) => return Ok(items.clone()),
        Some(Value::Text(text)) => text,
        // Without them the skill could do more than it says.
        Some(Value::Other) => return Err("its allowed-tools cannot be understood".into()),
    };
    let (mut tools, mut depth) = (vec![String::new()], 0usize);
    for c in text.chars() {
        depth = match c {
            '(' => depth + 1,
            ')' => depth.saturating_sub(1),
            _ => depth,
        };
        match tools.last_mut() {
            Some(last) if depth > 0 || !(c == ',' || c.is_whitespace()) => last.push(c),
            _ => tools.push(String::new()),
        }
    }
    tools.retain(|t| !t.is_empty());
    Ok(tools)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(dir: &Path, path: &str, text: &str) {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fn minimal(name: &str) -> String {
        format!("---\nname: {name}\ndescription: does {name}\n---\nbody of {name}\n")
    }
    fn load_dir(dir: &Path) -> (Vec<Skill>, Vec<String>) {
        let mut warnings = Vec::new();
        let skills = load(&[Place::new(dir.to_owned(), "user", "user")], &mut warnings);
        (skills, warnings)
    }
    fn names(skills: &[Skill]) -> Vec<&str> {
        skills.iter().map(|s| s.name.as_str()).collect()
    }

    #[test]
    fn b12_a_skills_folder_node_modules_and_loops_are_not_walked() {
        let dir = tempfile::tempdir().unwrap();
        let skills = dir.path().join("skills");
        write(&skills, "a/SKILL.md", &minimal("a"));
        write(&skills, "a/examples/SKILL.md", &minimal("example"));
        write(&skills, "deep/er/b/SKILL.md", &minimal("b"));
        for n in 0..50 {
            write(&skills, &format!("node_modules/p{n}/SKILL.md"), &minimal("x"));
        }
        write(&skills, "README.md", "# about");
        write(&skills, "c.md", &minimal("c"));
        write(dir.path(), "elsewhere/d/SKILL.md", &minimal("d"));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("..", skills.join("loop")).unwrap();
            std::os::unix::fs::symlink(&skills, skills.join("self")).unwrap();
            std::os::unix::fs::symlink(dir.path().join("elsewhere/d"), skills.join("linked")).unwrap();
            std::os::unix::fs::symlink(skills.join("a"), skills.join("z")).unwrap();
        }
        let (skills, warnings) = load_dir(&skills);
        let expected: &[&str] = if cfg!(unix) { &["a", "c", "b", "d"] } else { &["a", "c", "b"] };
        let mut sorted = names(&skills);
        sorted.sort_unstable();
        let mut wanted = expected.to_vec();
        wanted.sort_unstable();
        assert_eq!(sorted, wanted, "{warnings:?}");
        assert_eq!(skills[0].body, "body of a\n");
        assert!(!skills[0].file_path.to_string_lossy().contains("examples"));
    }

    #[test]
    fn b13_a_skill_loads_whole_or_says_where_it_is_broken() {
        let dir = tempfile::tempdir().unwrap();
        write(
            dir.path(),
            "code-review/SKILL.md",
            "---\nname: code-review\ndescription: Review along two axes: Standards and Spec\nallowed-tools: Read, Bash(git log:*) Grep\n---\nx",
        );
        write(dir.path(), "broken/SKILL.md", "---\nname: broken\n{ x: [\n---\n");
        write(dir.path(), "tools/SKILL.md", "---\ndescription: d\nallowed-tools:\n  - {a: b}\n---\n");
        write(dir.path(), "none/SKILL.md", "no front matter");
        let (skills, warnings) = load_dir(dir.path());
        assert_eq!(names(&skills), ["code-review"]);
        assert_eq!(skills[0].description, "Review along two axes: Standards and Spec");
        assert_eq!(skills[0].allowed_tools, ["Read", "Bash(git log:*)", "Grep"]);
        let told = warnings.join("\n");
        assert!(told.contains("broken/SKILL.md:4:2 is not used: simple key expected"), "{told}");
        assert!(told.contains("allowed-tools cannot be understood"), "{told}");
        assert!(told.contains("none/SKILL.md is not used: it has no description"), "{told}");
    }

    #[test]
    fn of_two_with_one_name_the_first_place_counts_and_a_file_reached_twice_is_one() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "u/x/SKILL.md", &minimal("x"));
        write(dir.path(), "p/x/SKILL.md", &minimal("x").replace("body", "other body"));
        let place = |d: &str| Place::new(dir.path().join(d), "user", "user");
        let mut warnings = Vec::new();
        let skills =
            load(&[place("u"), place("p"), place("u/x/SKILL.md"), place("gone").named()], &mut warnings);
        assert_eq!((skills.len(), skills[0].body.as_str()), (1, "body of x\n"));
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].contains("two skills are named x") && warnings[1].contains("gone"));
    }

    #[test]
    fn a_name_that_is_odd_is_told_and_one_that_cannot_be_typed_is_not_taken() {
        let dir = tempfile::tempdir().unwrap();
        for (folder, name) in [("odd", "Odd_Name"), ("other", "another"), ("space", "a b")] {
            write(dir.path(), &format!("{folder}/SKILL.md"), &minimal(name));
        }
        let (skills, warnings) = load_dir(dir.path());
        assert_eq!(names(&skills), ["Odd_Name", "another"]);
        assert_eq!(warnings.len(), 3, "{warnings:?}");
    }
}
