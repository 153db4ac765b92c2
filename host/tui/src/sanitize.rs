//! The view boundary: text that is not the host's own loses what could steer a terminal or
//! reorder what is read. Escape sequences go whole; C0 (but tab and newline), C1 and
//! bidirectional controls go singly. Works on pieces of a stream.

/// Text whose pieces may cut an escape sequence in two.
#[derive(Debug, Default, Clone)]
pub struct Sanitizer {
    state: State,
    after_return: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum State {
    #[default]
    Ground,
    Escape,
    /// `ESC [`, or its C1 form.
    Csi,
    /// OSC, DCS, SOS, PM, APC: up to BEL, ST, or the end of the line.
    Str,
    /// `ESC (` and the like: one more.
    One,
}

impl Sanitizer {
    pub fn push(&mut self, piece: &str) -> String {
        let mut out = String::with_capacity(piece.len());
        for c in piece.chars() {
            self.step(c, &mut out);
        }
        out
    }

    fn step(&mut self, c: char, out: &mut String) {
        // A bare carriage return would let text overwrite what stands on its line.
        if std::mem::take(&mut self.after_return) && c != '\n' && self.state == State::Ground {
            out.push('\n');
        }
        self.state = match (self.state, c) {
            (State::Str | State::Csi | State::One | State::Escape, '\n') => {
                out.push('\n');
                State::Ground
            }
            (_, '\u{1b}') => State::Escape,
            (_, '\u{18}' | '\u{1a}') => State::Ground,
            (State::Escape, '[') => State::Csi,
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => State::Str,
            (State::Escape, ' '..='/') => State::One,
            (State::Escape | State::One, _) => State::Ground,
            (State::Csi, '@'..='~') => State::Ground,
            (State::Csi, _) => State::Csi,
            (State::Str, '\u{7}' | '\u{9c}') => State::Ground,
            (State::Str, _) => State::Str,
            (State::Ground, '\u{9b}') => State::Csi,
            (State::Ground, '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}') => State::Str,
            (State::Ground, '\r') => {
                self.after_return = true;
                State::Ground
            }
            (State::Ground, c) => {
                if c == '\n' || c == '\t' || !(c.is_control() || is_bidi_control(c)) {
                    out.push(c);
                }
                State::Ground
            }
        };
    }
}

fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A whole text.
pub fn text(s: &str) -> String {
    Sanitizer::default().push(s)
}

/// A text on one line of at most `max` characters.
pub fn line(s: &str, max: usize) -> String {
    let clean = text(s);
    let mut words = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.chars().count() > max {
        words = words.chars().take(max.saturating_sub(1)).collect();
        words.push('…');
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_go_whole() {
        for (given, left) in [
            ("a\u{1b}[31mred\u{1b}[0m", "ared"),
            ("\u{1b}]0;title\u{7}x", "x"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}Pq#0\u{1b}\\y", "y"),
            ("\u{1b}(Bz", "z"),
            ("\u{9b}2Jc1", "c1"),
            ("\u{1b}cfull reset", "full reset"),
        ] {
            assert_eq!(text(given), left, "{given:?}");
        }
    }

    #[test]
    fn controls_and_bidi_controls_go_but_text_stays() {
        assert_eq!(text("ü\u{7}n\u{8}\u{202e}icode\t日本\u{2066}\n"), "ünicode\t日本\n");
        assert_eq!(text("C1 \u{85}\u{80}gone"), "C1 gone");
    }

    #[test]
    fn a_bare_carriage_return_cannot_overwrite_its_line() {
        assert_eq!(text("safe\rrm\r\nnext"), "safe\nrm\nnext");
    }

    #[test]
    fn a_sequence_cut_in_two_is_still_one() {
        let mut s = Sanitizer::default();
        assert_eq!(s.push("a\u{1b}[3") + &s.push("1mb"), "ab");
    }

    #[test]
    fn an_unfinished_string_sequence_cannot_swallow_the_next_line() {
        assert_eq!(text("\u{1b}]0;never\nshown"), "\nshown");
    }

    #[test]
    fn a_line_is_one_line_and_short() {
        assert_eq!(line("a\n b   c", 80), "a b c");
        assert_eq!(line("abcdef", 4), "abc…");
    }
}
