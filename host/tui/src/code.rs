//! Colours of code. The grammars are loaded with the first block that names a language.

use crate::{
    styled,
    theme::{Ground, Role, Theme},
};
use ratatui::{
    style::{Color, Modifier, Style},
    text::{Line, Span},
};
use std::sync::OnceLock;
use syntect::{
    easy::HighlightLines,
    highlighting::{FontStyle, ThemeSet},
    parsing::SyntaxSet,
};

/// A block of more bytes is shown in one colour: colouring costs about 1 ms for 10 KB.
const MOST: usize = 200_000;

fn grammars() -> &'static (SyntaxSet, ThemeSet) {
    static LOADED: OnceLock<(SyntaxSet, ThemeSet)> = OnceLock::new();
    LOADED.get_or_init(|| (SyntaxSet::load_defaults_newlines(), ThemeSet::load_defaults()))
}

/// Each line of the block; `language` as a fence names it.
pub fn lines(code: &str, language: &str, theme: &Theme) -> Vec<Line<'static>> {
    colored(code, language, theme)
        .unwrap_or_else(|| code.lines().map(|l| styled::line(l, theme.style(Role::Code))).collect())
}

fn colored(code: &str, language: &str, theme: &Theme) -> Option<Vec<Line<'static>>> {
    if language.is_empty() || code.len() > MOST || theme.ground == Ground::None {
        return None;
    }
    let (syntaxes, themes) = grammars();
    let syntax = syntaxes.find_syntax_by_token(language)?;
    let colors = themes.themes.get(match theme.ground {
        Ground::Light => "InspiredGitHub",
        _ => "base16-ocean.dark",
    })?;
    let mut state = HighlightLines::new(syntax, colors);
    code.split_inclusive('\n')
        .map(|line| {
            let parts = state.highlight_line(line, syntaxes).ok()?;
            let spans: Vec<Span<'static>> = parts
                .into_iter()
                .map(|(style, text)| styled::span(text.trim_end_matches('\n'), style_of(style)))
                .collect();
            Some(Line::from(spans))
        })
        .collect()
}

fn style_of(style: syntect::highlighting::Style) -> Style {
    let c = style.foreground;
    let mut out = Style::default().fg(Color::Rgb(c.r, c.g, c.b));
    for (font, modifier) in [(FontStyle::BOLD, Modifier::BOLD), (FontStyle::ITALIC, Modifier::ITALIC)] {
        if style.font_style.contains(font) {
            out = out.add_modifier(modifier);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_a_known_language_has_several_colours_and_keeps_its_text() {
        let code = "fn main() {\n\tlet x = \"é\"; // why\n}\n";
        let lines = lines(code, "rust", &Theme::dark());
        let text: Vec<String> =
            lines.iter().map(|l| l.spans.iter().map(|s| s.content.as_ref()).collect()).collect();
        assert_eq!(text, ["fn main() {", "    let x = \"é\"; // why", "}"]);
        let colors: std::collections::HashSet<_> =
            lines.iter().flat_map(|l| l.spans.iter().map(|s| s.style.fg)).collect();
        assert!(colors.len() > 2, "{colors:?}");
    }

    #[test]
    fn an_unknown_language_is_shown_as_it_is() {
        assert_eq!(lines("a\nb\n", "no-such", &Theme::dark()).len(), 2);
        assert_eq!(lines("a", "rust", &Theme::plain()).len(), 1);
    }
}
