//! HTTP clients, each made when the first URL needs it. Roots, crypto and the TLS client
//! cost milliseconds and memory: an `http` URL never pays for them.

use reqwest::{Client, Url, redirect::Policy};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

const CONNECT: Duration = Duration::from_secs(30);

/// Shared by all models of a set: connections are pooled.
#[derive(Default)]
pub(crate) struct Transport {
    /// `http` to this machine: no TLS, and never through a proxy.
    loopback: OnceLock<Result<Client, String>>,
    /// `http` elsewhere: no TLS, the system's proxy.
    plain: OnceLock<Result<Client, String>>,
    /// `https` to this machine.
    tls_loopback: OnceLock<Result<Client, String>>,
    tls: OnceLock<Result<Client, String>>,
}

impl Transport {
    pub fn client(&self, url: &Url) -> Result<&Client, String> {
        let tls = url.scheme() == "https";
        let local = is_loopback(url);
        let slot = match (tls, local) {
            (false, true) => &self.loopback,
            (false, false) => &self.plain,
            (true, true) => &self.tls_loopback,
            (true, false) => &self.tls,
        };
        slot.get_or_init(|| build(tls, local)).as_ref().map_err(Clone::clone)
    }
}

fn build(tls: bool, local: bool) -> Result<Client, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut builder = Client::builder()
        .connect_timeout(CONNECT)
        // A key is for the server it was given for, not for where that one points.
        .redirect(Policy::none());
    if local {
        builder = builder.no_proxy();
    }
    if tls {
        // The default of the process, as reqwest looks for it; someone else's is as good.
        let _ = rustls::crypto::CryptoProvider::install_default((*provider).clone());
    } else {
        // reqwest builds a TLS connector for every client; this one trusts nobody and so
        // reads no roots.
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        builder = builder.tls_backend_preconfigured(config);
    }
    builder.build().map_err(|error| format!("cannot make an HTTP client: {}", causes(&error)))
}

/// An error with what is behind it, without the URL (it may hold a key).
pub(crate) fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}

/// What is behind all of it.
pub(crate) fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut root = error;
    while let Some(cause) = root.source() {
        root = cause;
    }
    root.to_string()
}

fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        None => false,
        Some(host) => {
            let bare = host.trim_start_matches('[').trim_end_matches(']');
            host == "localhost"
                || host.ends_with(".localhost")
                || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn this_machine_is_known_by_every_name_it_has() {
        for (text, want) in [
            ("http://127.0.0.1:1/v1", true),
            ("http://127.8.8.8/", true),
            ("http://localhost:11434", true),
            ("http://[::1]:80", true),
            ("https://api.openai.com", false),
            ("http://localhost.evil.example", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(is_loopback(&url(text)), want, "{text}");
        }
    }

    #[test]
    fn a_plain_url_makes_no_tls_client() {
        let transport = Transport::default();
        transport.client(&url("http://127.0.0.1:1")).unwrap();
        transport.client(&url("http://example.com")).unwrap();
        assert!(transport.tls.get().is_none() && transport.tls_loopback.get().is_none());
    }

    #[test]
    fn a_tls_client_can_be_made_with_the_ring_provider() {
        Transport::default().client(&url("https://example.com")).unwrap();
    }
}
