//! HTTP clients, each made when the first URL needs it. Roots, crypto and the TLS client
//! cost milliseconds and memory: an `http` URL never pays for them.
//!
//! A proxy is what `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say, or the system.
//! Certificates are the system's (on Linux `SSL_CERT_FILE` and `SSL_CERT_DIR` say where they are)
//! and those of the PEM file that `ATOMIC_EXTRA_CA_CERTS` or `NODE_EXTRA_CA_CERTS` names.

use crate::environment::Environment;
use reqwest::{Certificate, Client, Url, redirect::Policy};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

const CONNECT: Duration = Duration::from_secs(30);

/// Files with more certificates to trust; the first that is set counts.
const EXTRA_CERTIFICATES: [&str; 2] = ["ATOMIC_EXTRA_CA_CERTS", "NODE_EXTRA_CA_CERTS"];

/// Shared by all models of a set: connections are pooled.
#[derive(Default)]
pub(crate) struct Transport {
    environment: Environment,
    /// `http` to this machine: no TLS, and never through a proxy.
    loopback: OnceLock<Result<Client, String>>,
    /// `http` elsewhere: no TLS, the system's proxy.
    plain: OnceLock<Result<Client, String>>,
    /// `https` to this machine.
    tls_loopback: OnceLock<Result<Client, String>>,
    tls: OnceLock<Result<Client, String>>,
}

impl Transport {
    pub fn new(environment: Environment) -> Self {
        Transport { environment, ..Transport::default() }
    }

    pub fn client(&self, url: &Url) -> Result<&Client, String> {
        let tls = url.scheme() == "https";
        let local = is_loopback(url);
        let slot = match (tls, local) {
            (false, true) => &self.loopback,
            (false, false) => &self.plain,
            (true, true) => &self.tls_loopback,
            (true, false) => &self.tls,
        };
        slot.get_or_init(|| build(tls, local, &self.environment)).as_ref().map_err(Clone::clone)
    }
}

fn build(tls: bool, local: bool, environment: &Environment) -> Result<Client, String> {
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
        for certificate in extra_certificates(environment)? {
            builder = builder.add_root_certificate(certificate);
        }
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

fn extra_certificates(environment: &Environment) -> Result<Vec<Certificate>, String> {
    let named = EXTRA_CERTIFICATES.iter().find_map(|name| Some((name, environment.get(name)?)));
    let Some((name, path)) = named else { return Ok(Vec::new()) };
    let wrong = |why: String| format!("the certificates that {name} names, {path}, cannot be used: {why}");
    let pem = crate::file::read(std::path::Path::new(&path)).map_err(|e| wrong(e.to_string()))?;
    let found = Certificate::from_pem_bundle(&pem).map_err(|e| wrong(causes(&e)))?;
    match found.is_empty() {
        true => Err(wrong("there is no certificate in it".to_owned())),
        false => Ok(found),
    }
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
    fn extra_certificates_that_cannot_be_used_are_named_before_anything_is_sent() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("extra.pem");
        let client = || {
            let environment = Environment::fixed([("NODE_EXTRA_CA_CERTS", path.to_str().unwrap())]);
            Transport::new(environment).client(&url("https://example.com")).map(drop)
        };
        assert!(client().unwrap_err().contains("NODE_EXTRA_CA_CERTS names"));
        std::fs::write(&path, "nothing").unwrap();
        assert!(client().unwrap_err().contains("there is no certificate in it"));
    }

    #[test]
    fn a_tls_client_can_be_made_with_the_ring_provider() {
        Transport::default().client(&url("https://example.com")).unwrap();
    }
}
