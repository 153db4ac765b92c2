//! A company's network: everything goes through a proxy, and certificates are the company's own.

use atomic_tests::env::Home;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use serde_json::json;
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

fn pem(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tls").join(name)
}

/// A proxy that leads every name to a server that says hello, with a certificate for `models.test`.
struct Proxy {
    address: String,
    /// Each first line, and the head of what was asked inside.
    seen: Arc<Mutex<Vec<String>>>,
}

fn proxy() -> Proxy {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let certificates = vec![CertificateDer::from_pem_file(pem("server.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(pem("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .unwrap();
    let (config, log) = (Arc::new(config), seen.clone());
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            serve(socket, config.clone(), &log);
        }
    });
    Proxy { address, seen }
}

/// A client that does not like the certificate goes away; that is part of the stories.
fn serve(mut socket: TcpStream, config: Arc<rustls::ServerConfig>, log: &Mutex<Vec<String>>) {
    let mut head = BufReader::new(socket.try_clone().unwrap());
    let mut first = String::new();
    head.read_line(&mut first).unwrap();
    log.lock().unwrap().push(first.trim().to_owned());
    let mut line = String::from(" ");
    while !line.trim().is_empty() {
        line.clear();
        head.read_line(&mut line).unwrap();
    }
    socket.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").unwrap();
    let tls = rustls::ServerConnection::new(config).unwrap();
    let mut tls = rustls::StreamOwned::new(tls, socket);
    let mut asked = Vec::new();
    let mut piece = [0; 4096];
    // The body is one object: its end is the end of what is asked.
    while !asked.ends_with(b"}") {
        match tls.read(&mut piece) {
            Ok(n) if n > 0 => asked.extend_from_slice(&piece[..n]),
            _ => return,
        }
    }
    let text = String::from_utf8_lossy(&asked).into_owned();
    log.lock().unwrap().push(text.split("\r\n\r\n").next().unwrap_or_default().to_owned());
    let chunk = json!({"choices": [{"delta": {"content": "hello from inside"}, "finish_reason": "stop"}]});
    let _ = write!(
        tls,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: {chunk}\n\ndata: [DONE]\n\n"
    );
    tls.conn.send_close_notify();
    let _ = tls.flush();
}

fn home() -> Home {
    let home = Home::new();
    home.models_json(&json!({"providers": {"work": {
        "baseUrl": "https://models.test/v1", "api": "openai-completions", "apiKey": "sk-work",
        "models": [{"id": "m"}],
    }}}));
    let settings = home.atomic_home().join("agent/settings.json");
    std::fs::write(settings, r#"{"retry": {"enabled": false}}"#).unwrap();
    home
}

#[test]
fn a_proxy_and_a_companys_own_authority_are_honoured() {
    // The system's own variable, and one that adds to the system's certificates.
    for variable in ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "ATOMIC_EXTRA_CA_CERTS"] {
        let (proxy, home) = (proxy(), home());
        let run = home
            .atomic(["-p", "hi"])
            .env("HTTPS_PROXY", format!("http://{}", proxy.address))
            .env(variable, pem("authority.pem"))
            .run()
            .ok();
        assert!(run.stdout.contains("hello from inside"), "{variable}: {}\n{}", run.stdout, run.stderr);
        let seen = proxy.seen.lock().unwrap().clone();
        assert_eq!(seen[0], "CONNECT models.test:443 HTTP/1.1");
        assert!(
            seen[1].starts_with("POST /v1/chat/completions") && seen[1].contains("Bearer sk-work"),
            "{seen:?}"
        );
    }
}

#[test]
fn an_authority_nobody_named_is_refused_before_the_key_is_sent() {
    let (proxy, home) = (proxy(), home());
    let run = home.atomic(["-p", "hi"]).env("HTTPS_PROXY", format!("http://{}", proxy.address)).run();
    assert!(run.stderr.contains("models::tls"), "{}", run.stderr);
    let seen = proxy.seen.lock().unwrap().clone();
    assert!(seen.iter().all(|s| s.starts_with("CONNECT")), "{seen:?}");
}

#[test]
fn no_proxy_is_honoured() {
    let (proxy, home) = (proxy(), home());
    let run = home
        .atomic(["-p", "hi"])
        .env("HTTPS_PROXY", format!("http://{}", proxy.address))
        .env("NO_PROXY", "elsewhere.test,.test")
        .env("NODE_EXTRA_CA_CERTS", pem("authority.pem"))
        .run();
    // The name exists nowhere, so it is not reached, which shows that nobody else was asked.
    assert!(run.stderr.contains("models::unreachable"), "{}", run.stderr);
    assert!(proxy.seen.lock().unwrap().is_empty());
}
