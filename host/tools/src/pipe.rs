//! The one pipe that a command's standard output and error share, so that they stay in order.

pub use imp::Output;

#[cfg(unix)]
mod imp {
    use std::io::{self, PipeWriter};
    use tokio::{io::AsyncReadExt, net::unix::pipe::Receiver};

    #[derive(Debug)]
    pub struct Output(Receiver);

    impl Output {
        /// The writer belongs to the child alone; it must be dropped here for the end to be seen.
        pub fn new() -> io::Result<(Self, PipeWriter)> {
            let (reader, writer) = io::pipe()?;
            Ok((Output(Receiver::from_owned_fd(reader.into())?), writer))
        }

        /// Empty at the end. Cancel-safe.
        pub async fn read(&mut self) -> io::Result<Vec<u8>> {
            let mut chunk = Vec::with_capacity(64 * 1024);
            self.0.read_buf(&mut chunk).await?;
            Ok(chunk)
        }
    }
}

#[cfg(not(unix))]
mod imp {
    use std::io::{self, PipeWriter, Read};
    use tokio::sync::mpsc;

    /// Anonymous pipes cannot be waited for here, so a thread reads. It lives as long as someone holds the
    /// other end, and goes on reading unheard so that a background process is not stopped by a full pipe.
    #[derive(Debug)]
    pub struct Output(mpsc::Receiver<io::Result<Vec<u8>>>);

    impl Output {
        pub fn new() -> io::Result<(Self, PipeWriter)> {
            let (mut reader, writer) = io::pipe()?;
            let (sender, receiver) = mpsc::channel(16);
            std::thread::Builder::new().name("command output".into()).spawn(move || {
                let mut chunk = vec![0; 64 * 1024];
                loop {
                    match reader.read(&mut chunk) {
                        Ok(0) => break,
                        Ok(n) => drop(sender.blocking_send(Ok(chunk[..n].to_vec()))),
                        Err(e) => {
                            drop(sender.blocking_send(Err(e)));
                            break;
                        }
                    }
                }
            })?;
            Ok((Output(receiver), writer))
        }

        pub async fn read(&mut self) -> io::Result<Vec<u8>> {
            self.0.recv().await.unwrap_or(Ok(Vec::new()))
        }
    }
}
