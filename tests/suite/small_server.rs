//! Answers `small` to every request on 127.0.0.1, and keeps connections open: what a test
//! needs to see that the network works.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
};

pub struct SmallServer {
    port: u16,
}

impl SmallServer {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                std::thread::spawn(move || serve(socket));
            }
        });
        SmallServer { port }
    }
    pub fn port(&self) -> u16 {
        self.port
    }
}

fn serve(mut socket: TcpStream) -> Option<()> {
    let mut reader = BufReader::new(socket.try_clone().ok()?);
    loop {
        let mut close = false;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            close |= line.eq_ignore_ascii_case("connection: close\r\n");
            if line == "\r\n" {
                break;
            }
        }
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nsmall").ok()?;
        if close {
            return None;
        }
    }
}
