//! A socket that answers each connection with prepared bytes and keeps what it was sent.

use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

pub struct Peer {
    pub url: String,
    sent: Arc<Mutex<Vec<Sent>>>,
    /// One message per request, once it has been read and answered.
    answered: mpsc::UnboundedReceiver<()>,
}

#[derive(Clone, Debug)]
pub struct Sent {
    pub line: String,
    pub headers: BTreeMap<String, String>,
    pub body: Value,
}

pub enum Reply {
    /// The bytes, then the connection closes.
    Bytes(Vec<u8>),
    /// The bytes, then nothing; open until the other side closes.
    Silence(Vec<u8>),
}

/// An event stream with this body.
pub fn events(body: &str) -> Reply {
    status("200 OK", "text/event-stream", body)
}

pub fn status(status: &str, kind: &str, body: &str) -> Reply {
    Reply::Bytes(
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nX-Request-Id: r1\r\nconnection: close\r\n\r\n{body}"
        )
        .into_bytes(),
    )
}

impl Peer {
    pub async fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let sent = Arc::new(Mutex::new(Vec::new()));
        let (tell, answered) = mpsc::unbounded_channel();
        let kept = sent.clone();
        tokio::spawn(async move {
            for reply in replies {
                let (mut socket, _) = listener.accept().await.unwrap();
                let request = read(&mut socket).await;
                kept.lock().unwrap().push(request);
                match reply {
                    Reply::Bytes(bytes) => {
                        let _ = socket.write_all(&bytes).await;
                        let _ = socket.shutdown().await;
                        let _ = tell.send(());
                    }
                    Reply::Silence(bytes) => {
                        let _ = socket.write_all(&bytes).await;
                        let _ = tell.send(());
                        let _ = socket.read(&mut [0]).await;
                    }
                }
            }
        });
        Peer { url, sent, answered }
    }

    pub fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }

    pub async fn answered(&mut self) {
        self.answered.recv().await.unwrap();
    }
}

async fn read(socket: &mut TcpStream) -> Sent {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break at;
        }
        assert!(socket.read_buf(&mut bytes).await.unwrap() > 0, "the request ended in its head");
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap().to_owned();
    let headers: BTreeMap<String, String> =
        lines.map(|l| l.split_once(": ").unwrap()).map(|(k, v)| (k.to_lowercase(), v.to_owned())).collect();
    let length: usize = headers["content-length"].parse().unwrap();
    let mut body = bytes.split_off(head_end + 4);
    while body.len() < length {
        assert!(socket.read_buf(&mut body).await.unwrap() > 0, "the request ended in its body");
    }
    Sent { line, headers, body: serde_json::from_slice(&body).unwrap() }
}
