//! How long a server asks to be left alone: `retry-after-ms`, or `retry-after` as seconds or a date.

use jiff::{Timestamp, fmt::rfc2822};
use reqwest::header::HeaderMap;
use std::time::Duration;

pub(crate) fn of(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).map(str::trim);
    let seconds = |text: &str| {
        let number = text.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0)?;
        Duration::try_from_secs_f64(number).ok()
    };
    if let Some(ms) = text("retry-after-ms").and_then(seconds) {
        return Some(ms / 1000);
    }
    let said = text("retry-after")?;
    seconds(said).or_else(|| {
        let when = rfc2822::DateTimeParser::new().parse_timestamp(said).ok()?;
        Some(Duration::try_from(when.duration_since(now)).unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_milliseconds_and_dates_are_understood_and_all_else_says_nothing() {
        let now: Timestamp = "2026-11-30T10:00:00Z".parse().unwrap();
        for (name, value, ms) in [
            ("retry-after", "7", Some(7_000)),
            ("retry-after", "0.5", Some(500)),
            ("retry-after-ms", "250", Some(250)),
            ("retry-after", "Mon, 30 Nov 2026 10:00:30 GMT", Some(30_000)),
            ("retry-after", "Mon, 30 Nov 2026 09:00:00 GMT", Some(0)),
            ("retry-after", "soon", None),
            ("retry-after", "-3", None),
            ("retry-after", "inf", None),
            ("retry-after", "1e300", None),
            ("x", "7", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            assert_eq!(of(&headers, now), ms.map(Duration::from_millis), "{name}: {value}");
        }
    }
}
