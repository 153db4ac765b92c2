//! What waits for its place in a run: steering (after the current tool batch) and
//! follow-ups (when the run would stop).

use crate::{
    hooks::StreamingBehavior,
    message::{CustomMessage, Message, UserMessage},
};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

#[derive(Clone, Debug, PartialEq)]
pub enum Queued {
    User(UserMessage),
    Custom(CustomMessage),
}

impl Queued {
    pub fn text(&self) -> String {
        match self {
            Queued::User(m) => m.content.plain_text(),
            Queued::Custom(m) => m.content.plain_text(),
        }
    }
    pub fn into_message(self) -> Message {
        match self {
            Queued::User(m) => Message::User(m),
            Queued::Custom(m) => Message::Custom(m),
        }
    }
}

/// How much one poll takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueMode {
    #[default]
    OneAtATime,
    All,
}

impl QueueMode {
    /// As settings and protocols spell it.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "one-at-a-time" => Some(QueueMode::OneAtATime),
            "all" => Some(QueueMode::All),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Queue {
    steering: VecDeque<Queued>,
    follow_up: VecDeque<Queued>,
    pub steering_mode: QueueMode,
    pub follow_up_mode: QueueMode,
    /// Nothing leaves it.
    pub paused: bool,
}

impl Queue {
    pub fn push(&mut self, place: StreamingBehavior, item: Queued) {
        match place {
            StreamingBehavior::Steer => self.steering.push_back(item),
            StreamingBehavior::FollowUp => self.follow_up.push_back(item),
        }
    }
    pub fn poll_steering(&mut self) -> Vec<Queued> {
        if self.paused { Vec::new() } else { take(&mut self.steering, self.steering_mode) }
    }
    pub fn poll_follow_up(&mut self) -> Vec<Queued> {
        if self.paused { Vec::new() } else { take(&mut self.follow_up, self.follow_up_mode) }
    }
    /// The next of all.
    pub fn pop(&mut self) -> Option<Queued> {
        if self.paused {
            return None;
        }
        self.steering.pop_front().or_else(|| self.follow_up.pop_front())
    }
    pub fn len(&self) -> usize {
        self.steering.len() + self.follow_up.len()
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    pub fn clear(&mut self) {
        self.steering.clear();
        self.follow_up.clear();
    }
    /// Messages of extensions, in the order they will be taken.
    pub fn customs(&self) -> impl Iterator<Item = CustomMessage> {
        let all = self.steering.iter().chain(&self.follow_up);
        all.filter_map(|q| match q {
            Queued::Custom(m) => Some(m.clone()),
            Queued::User(_) => None,
        })
    }
    /// `(steering, follow-up)`, as shown.
    pub fn texts(&self) -> (Vec<String>, Vec<String>) {
        let texts = |q: &VecDeque<Queued>| q.iter().map(Queued::text).collect();
        (texts(&self.steering), texts(&self.follow_up))
    }
}

fn take(queue: &mut VecDeque<Queued>, mode: QueueMode) -> Vec<Queued> {
    match mode {
        QueueMode::OneAtATime => queue.pop_front().into_iter().collect(),
        QueueMode::All => queue.drain(..).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> Queued {
        match Message::user(text, 0) {
            Message::User(m) => Queued::User(m),
            _ => unreachable!(),
        }
    }

    #[test]
    fn a_poll_takes_the_oldest_alone_unless_told_to_take_all() {
        let mut queue = Queue::default();
        for text in ["a", "b", "c"] {
            queue.push(StreamingBehavior::Steer, user(text));
        }
        assert_eq!(queue.poll_steering(), vec![user("a")]);
        queue.steering_mode = QueueMode::All;
        assert_eq!(queue.poll_steering(), vec![user("b"), user("c")]);
        assert!(queue.poll_steering().is_empty());
    }

    #[test]
    fn steering_and_follow_ups_do_not_mix() {
        let mut queue = Queue::default();
        queue.push(StreamingBehavior::FollowUp, user("later"));
        assert!(queue.poll_steering().is_empty());
        assert_eq!(queue.poll_follow_up(), vec![user("later")]);
    }
}
