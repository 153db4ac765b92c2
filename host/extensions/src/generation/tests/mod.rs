mod activation;
pub(super) mod clock;
mod fake;
mod random;
mod retirement;
mod stories;
