//! What extensions put around the transcript, as data for a front end (events.md E.7). Lines
//! are styled text without terminal bytes; whoever draws them decides what a style looks like.

use serde::{Deserialize, Serialize};

/// A run of text in one style. Colours are names of the theme, or `#rrggbb`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Span {
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fg: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bg: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bold: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dim: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub italic: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub underline: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub strikethrough: bool,
}

pub type Line = Vec<Span>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Placement {
    #[default]
    AboveEditor,
    BelowEditor,
}

/// `None` gives back what the program itself shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Update {
    SetWidget {
        key: String,
        #[serde(default)]
        lines: Option<Vec<Line>>,
        #[serde(default)]
        placement: Placement,
    },
    SetFooter {
        #[serde(default)]
        lines: Option<Vec<Line>>,
    },
    SetHeader {
        #[serde(default)]
        lines: Option<Vec<Line>>,
    },
    SetTitle {
        title: String,
    },
    SetEditorText {
        text: String,
    },
    PasteToEditor {
        text: String,
    },
    SetWorkingMessage {
        #[serde(default)]
        message: Option<String>,
    },
    SetWorkingVisible {
        visible: bool,
    },
    SetWorkingIndicator {
        #[serde(default)]
        frames: Option<Vec<String>>,
        #[serde(default)]
        interval_ms: Option<u64>,
    },
    SetHiddenThinkingLabel {
        #[serde(default)]
        label: Option<String>,
    },
    SetToolsExpanded {
        expanded: bool,
    },
    RequestRender {},
}

impl Update {
    /// What a later update of the same slot replaces, and how the slot is given back when who
    /// wrote it is gone; `None`: nothing stays.
    pub fn slot(&self) -> Option<(String, Update)> {
        Some(match self {
            Update::SetWidget { key, placement, .. } => (
                format!("widget:{key}"),
                Update::SetWidget { key: key.clone(), lines: None, placement: *placement },
            ),
            Update::SetFooter { .. } => ("footer".into(), Update::SetFooter { lines: None }),
            Update::SetHeader { .. } => ("header".into(), Update::SetHeader { lines: None }),
            Update::SetWorkingMessage { .. } => {
                ("workingMessage".into(), Update::SetWorkingMessage { message: None })
            }
            Update::SetWorkingVisible { .. } => {
                ("workingVisible".into(), Update::SetWorkingVisible { visible: true })
            }
            Update::SetWorkingIndicator { .. } => {
                ("workingIndicator".into(), Update::SetWorkingIndicator { frames: None, interval_ms: None })
            }
            Update::SetHiddenThinkingLabel { .. } => {
                ("hiddenThinkingLabel".into(), Update::SetHiddenThinkingLabel { label: None })
            }
            Update::SetTitle { .. }
            | Update::SetEditorText { .. }
            | Update::PasteToEditor { .. }
            | Update::SetToolsExpanded { .. }
            | Update::RequestRender {} => return None,
        })
    }

    /// What it gives back is not there any more.
    pub fn clears(&self) -> bool {
        self.slot().is_some_and(|(_, given_back)| given_back == *self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_given_back_by_the_update_that_clears_it() {
        let set: Update = serde_json::from_value(serde_json::json!({
            "method": "setWidget", "key": "k", "lines": [[{"text": "a", "bold": true}]], "placement": "belowEditor"
        }))
        .unwrap();
        assert!(!set.clears());
        let (slot, back) = set.slot().unwrap();
        assert_eq!(slot, "widget:k");
        assert!(back.clears());
        assert!(Update::SetTitle { title: "t".into() }.slot().is_none());
    }
}
