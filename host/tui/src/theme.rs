//! What each kind of text looks like. Names of colours, `#rrggbb` or a number of the palette.

use ratatui::style::{Color, Modifier, Style};
use serde_json::{Map, Value};

/// The roles that text on the screen has. A theme file gives colours to their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Text,
    Accent,
    Dim,
    User,
    Thinking,
    Heading,
    Code,
    Link,
    Quote,
    Tool,
    Success,
    Error,
    Warning,
    Added,
    Removed,
    Border,
    Selected,
}

/// Every role with its name in a theme file.
pub const ROLES: [(Role, &str); 17] = [
    (Role::Text, "text"),
    (Role::Accent, "accent"),
    (Role::Dim, "dim"),
    (Role::User, "userMessageText"),
    (Role::Thinking, "thinkingText"),
    (Role::Heading, "mdHeading"),
    (Role::Code, "mdCode"),
    (Role::Link, "mdLink"),
    (Role::Quote, "mdQuote"),
    (Role::Tool, "toolTitle"),
    (Role::Success, "success"),
    (Role::Error, "error"),
    (Role::Warning, "warning"),
    (Role::Added, "toolDiffAdded"),
    (Role::Removed, "toolDiffRemoved"),
    (Role::Border, "border"),
    (Role::Selected, "selected"),
];

/// Which code colouring goes with the background.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ground {
    #[default]
    Dark,
    Light,
    /// No colours at all.
    None,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Theme {
    pub name: String,
    pub ground: Ground,
    colors: Vec<(Role, Color)>,
}

impl Default for Theme {
    fn default() -> Self {
        Theme::dark()
    }
}

impl Theme {
    /// Colours of the terminal's own palette: they fit whatever it is set to.
    pub fn dark() -> Self {
        Theme { name: "dark".into(), ground: Ground::Dark, colors: basic(Color::DarkGray, Color::Yellow) }
    }

    pub fn light() -> Self {
        Theme { name: "light".into(), ground: Ground::Light, colors: basic(Color::Gray, Color::Blue) }
    }

    /// `NO_COLOR`: weight and underlines are all that is left.
    pub fn plain() -> Self {
        Theme { name: "none".into(), ground: Ground::None, colors: Vec::new() }
    }

    /// A built-in one by its name. `auto` asks `COLORFGBG`, which some terminals set.
    pub fn named(name: &str, colorfgbg: Option<&str>) -> Option<Self> {
        Some(match name {
            "dark" => Theme::dark(),
            "light" => Theme::light(),
            "none" => Theme::plain(),
            "auto" => match colorfgbg.and_then(|v| v.rsplit(';').next()?.parse::<u8>().ok()) {
                Some(7 | 15) => Theme::light(),
                _ => Theme::dark(),
            },
            _ => return None,
        })
    }

    /// `{"name", "base"?: "dark" | "light", "vars"?: {..}, "colors": {role: colour}}`. What it does
    /// not name is as in its base. Answers with what was not understood beside it.
    pub fn read(json: &Value) -> Result<(Self, Vec<String>), String> {
        let empty = Map::new();
        let map = json.as_object().ok_or("a theme is an object")?;
        let name = map.get("name").and_then(Value::as_str).ok_or("a theme has a \"name\"")?;
        let mut theme = match map.get("base").and_then(Value::as_str) {
            Some("light") => Theme::light(),
            _ => Theme::dark(),
        };
        theme.name = name.to_owned();
        let vars = map.get("vars").and_then(Value::as_object).unwrap_or(&empty);
        let colors = map.get("colors").and_then(Value::as_object).ok_or("a theme has \"colors\"")?;
        let mut unknown = Vec::new();
        for (key, value) in colors {
            let Some((role, _)) = ROLES.iter().find(|(_, n)| n == key) else { continue };
            let value = value.as_str().and_then(|v| vars.get(v)).unwrap_or(value);
            match color(value) {
                Some(c) => {
                    theme.colors.retain(|(r, _)| r != role);
                    theme.colors.push((*role, c));
                }
                None => unknown.push(format!("{key}: {value} is no colour")),
            }
        }
        Ok((theme, unknown))
    }

    pub fn style(&self, role: Role) -> Style {
        let mut style = Style::default();
        if let Some((_, color)) = self.colors.iter().find(|(r, _)| *r == role)
            && *color != Color::Reset
        {
            style = style.fg(*color);
        }
        match role {
            Role::Heading | Role::User | Role::Tool => style.add_modifier(Modifier::BOLD),
            Role::Link => style.add_modifier(Modifier::UNDERLINED),
            Role::Thinking | Role::Quote => style.add_modifier(Modifier::ITALIC),
            Role::Selected => style.add_modifier(Modifier::BOLD),
            Role::Dim | Role::Border if self.ground == Ground::None => style.add_modifier(Modifier::DIM),
            _ => style,
        }
    }

    /// A colour that an extension names: a role of the theme, or a colour.
    pub fn color(&self, name: &str) -> Option<Color> {
        if self.ground == Ground::None {
            return None;
        }
        if let Some((role, _)) = ROLES.iter().find(|(_, n)| *n == name) {
            return self.colors.iter().find(|(r, _)| r == role).map(|(_, c)| *c);
        }
        name.parse().ok()
    }
}

fn basic(dim: Color, code: Color) -> Vec<(Role, Color)> {
    use Role::*;
    vec![
        (Accent, Color::Cyan),
        (Dim, dim),
        (Thinking, dim),
        (Heading, Color::Cyan),
        (Code, code),
        (Link, Color::Blue),
        (Quote, dim),
        (Success, Color::Green),
        (Error, Color::Red),
        (Warning, Color::Yellow),
        (Added, Color::Green),
        (Removed, Color::Red),
        (Border, dim),
        (Selected, Color::Cyan),
    ]
}

fn color(value: &Value) -> Option<Color> {
    match value {
        Value::Number(n) => n.as_u64().and_then(|n| u8::try_from(n).ok()).map(Color::Indexed),
        Value::String(s) if s.is_empty() => Some(Color::Reset),
        Value::String(s) => s.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_theme_file_changes_what_it_names_and_says_what_it_does_not_understand() {
        let json = json!({"name": "mine", "base": "light", "vars": {"deep": "#112233"},
            "colors": {"accent": "deep", "error": 9, "dim": "no such", "later": "red"}});
        let (theme, unknown) = Theme::read(&json).unwrap();
        assert_eq!(theme.style(Role::Accent).fg, Some(Color::Rgb(0x11, 0x22, 0x33)));
        assert_eq!(theme.style(Role::Error).fg, Some(Color::Indexed(9)));
        assert_eq!(theme.ground, Ground::Light);
        assert_eq!(unknown, ["dim: \"no such\" is no colour"]);
        assert!(Theme::read(&json!({"colors": {}})).is_err());
    }

    #[test]
    fn without_colours_nothing_is_coloured() {
        let theme = Theme::plain();
        assert!(ROLES.iter().all(|(r, _)| theme.style(*r).fg.is_none()));
        assert_eq!(theme.color("#ff0000"), None);
    }

    #[test]
    fn auto_follows_the_background_that_the_terminal_tells() {
        assert_eq!(Theme::named("auto", Some("0;15")).unwrap().ground, Ground::Light);
        assert_eq!(Theme::named("auto", Some("15;0")).unwrap().ground, Ground::Dark);
        assert_eq!(Theme::named("auto", None).unwrap().ground, Ground::Dark);
        assert!(Theme::named("nope", None).is_none());
    }
}
